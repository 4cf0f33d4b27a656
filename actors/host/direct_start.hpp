#pragma once
// What a task's command comes down to, where that is one program: then no shell starts it, and a zygote can
// fork one Python script. Pure but for the search of the program.

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

/// The words of an entrypoint that is one program and needs no shell: in a text nothing of the shell's own,
/// and a program that the kernel can run, found in `path_variable` or, by a relative path, in `workdir` (the
/// host's path of the working directory).
std::optional<std::vector<std::string>> program_start_of(const std::vector<std::string>& entrypoint,
                                                         const std::string& path_variable,
                                                         const std::string& workdir);

/// The variables that the entrypoint script of stock_task.cpp, and a shell below it, leave to the command. Of
/// `env`, all that a task's command is given.
std::vector<std::string> direct_variables(const std::vector<std::string>& env);

} // namespace troupe
