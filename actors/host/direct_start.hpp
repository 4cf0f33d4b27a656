#pragma once
// What a trial's command comes down to, where that is one Python script: then a zygote can fork it. Pure but
// for the search of the interpreter.

#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct direct_start {
  std::string program;           ///< the interpreter's executable
  std::vector<std::string> argv; ///< "python3", the script, its arguments
  std::string script;            ///< path in the working directory
};

/// The words of a shell command that does nothing but run one program; nothing where the shell has more to
/// do.
std::optional<std::vector<std::string>> plain_words(std::string_view command);

/// `entrypoint` as the configuration has it, a text as {"/bin/sh", "-c", TEXT}. Nothing unless it is
/// `python3 FILE [ARGUMENT]...` with a FILE in the working directory and an interpreter that is no script
/// itself.
std::optional<direct_start> direct_start_of(const std::vector<std::string>& entrypoint,
                                            const std::string& path_variable);

/// The variables that the entrypoint script of stock_task.cpp, and a shell below it, leave to the command. Of
/// `env`, all that a task's command is given.
std::vector<std::string> direct_variables(const std::vector<std::string>& env);

} // namespace troupe
