"""The exceptions of this package."""


class TroupeError(RuntimeError):
    """The platform cannot do what the script asked for. The text says why, and what to do."""


class Refused(TroupeError, ValueError):
    """A report or checkpoint exceeds a limit, or the cluster refused it. A repeat would be refused too."""
