"""Programs that are the whole of a task: `python3 -m troupe.services.notebook`, `.shell`, `.tensorboard`. The agent gives them a Unix
socket to listen on (TROUPE_SERVICE_SOCKET), which the master's proxy alone reaches. See docs/tasks.md."""
