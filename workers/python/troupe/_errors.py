"""The exceptions of this package."""


class TroupeError(RuntimeError):
    """The platform cannot do what was asked; the text says why and what to do."""


class Refused(TroupeError, ValueError):
    """A report or checkpoint that breaks a limit, or that the cluster refused for good. Repeating it does not help."""
