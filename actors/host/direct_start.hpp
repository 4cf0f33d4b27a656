#pragma once
// Whether a task's command is only one program. If it is, the task needs no shell, and a zygote can fork it
// if it is one Python script. Pure but for the search of the program.

#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct direct_start {
  std::string program;           ///< the interpreter's executable
  std::vector<std::string> argv; ///< "python3", the script and its arguments
  std::string script;            ///< path of the script in the working directory
};

/// The words of a shell command that only runs one program; nothing if the shell has more to do.
std::optional<std::vector<std::string>> plain_words(std::string_view command);

/// `entrypoint` is the configuration's; if the configuration has a text, it is {"/bin/sh", "-c", TEXT}.
/// Nothing unless it is `python3 FILE [ARGUMENT]...`, FILE lies in the working directory, and the interpreter
/// is not a script itself.
std::optional<direct_start> direct_start_of(const std::vector<std::string>& entrypoint,
                                            const std::string& path_variable);

/// The words of an entrypoint that is one program and needs no shell: a text holds nothing that only a shell
/// understands, and the kernel can run the program. The program is found in `path_variable`, or in `workdir`
/// (the working directory's path on the host) if its path is relative.
std::optional<std::vector<std::string>> program_start_of(const std::vector<std::string>& entrypoint,
                                                         const std::string& path_variable,
                                                         const std::string& workdir);

/// The variables that the command gets from the entrypoint script of stock_task.cpp and from a shell below
/// that script. `env` holds all variables that the task's command is given.
std::vector<std::string> direct_variables(const std::vector<std::string>& env);

} // namespace troupe
