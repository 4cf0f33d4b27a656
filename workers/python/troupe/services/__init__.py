"""Programs that each are a whole task: `python3 -m troupe.services.notebook`, `.shell` and `.tensorboard`. The agent names the Unix
socket on which the program listens (TROUPE_SERVICE_SOCKET). Only the master's proxy reaches that socket. See docs/tasks.md.
`.checkpoint_gc` listens nowhere: it removes files of checkpoints from a bucket, and ends."""
