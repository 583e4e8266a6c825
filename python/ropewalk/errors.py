"""The error of the command line: one line that names what was wrong and what to do."""


class CommandError(Exception):
    """Shown as `ropewalk VERB: <message>`, without a traceback."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
