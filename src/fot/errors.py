"""Every error that fot raises on purpose.

    FotError                     message says what is wrong, .hint what to do about it
      ConfigError                a setting, a policy spec or a parameter has a value that cannot be
      UsageError                 a command was called in a way that cannot work
      PoolError
        PoolSchemaError          rows or columns are not those of a pool
        PoolCorrupt              a pool was one once, and is damaged
      EngineError                .retryable, .request_id, .retry_after_s
        EngineUnavailable        nobody answers
        EngineTimeout            somebody answered, then fell silent
        EngineRefused            an answer with an error .status
        EngineProtocolError      an answer that does not follow the protocol
      GradingError               a grader cannot run (an answer that it cannot judge is no error)
      MissingExtra               an optional dependency is absent; .extra names the group that brings it

Cancellation is not an error: it stays ``asyncio.CancelledError`` or ``KeyboardInterrupt``.
"""

__all__ = [
    "ConfigError",
    "EngineError",
    "EngineProtocolError",
    "EngineRefused",
    "EngineTimeout",
    "EngineUnavailable",
    "FotError",
    "GradingError",
    "MissingExtra",
    "PoolCorrupt",
    "PoolError",
    "PoolSchemaError",
    "UsageError",
]


class FotError(Exception):
    """Root of the tree. ``str(error)`` is the message alone; ``hint`` is one sentence, or empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(FotError):
    """A value that cannot be: names the field, the value and the rule that it breaks."""


class UsageError(FotError):
    """A command or function called in a way that cannot work, whatever the values."""


class PoolError(FotError):
    """A pool cannot be read, written or made."""


class PoolSchemaError(PoolError):
    """Rows or columns that are not those of a pool."""


class PoolCorrupt(PoolError):
    """A pool whose files do not agree with its manifest."""


class EngineError(FotError):
    """An engine failed. ``retryable``: the same request may succeed later; ``request_id``: for the logs.

    ``retry_after_s``: how long the engine asked to be left alone, in seconds; None when it did not say.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        retryable: bool = False,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.retryable = retryable
        self.request_id = request_id
        self.retry_after_s = retry_after_s


class EngineUnavailable(EngineError):
    """No connection could be made, or it broke before the answer was complete."""


class EngineTimeout(EngineError):
    """The engine stayed silent for longer than allowed."""


class EngineRefused(EngineError):
    """The engine answered with an HTTP error ``status``."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        status: int,
        retryable: bool = False,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint, retryable=retryable, request_id=request_id, retry_after_s=retry_after_s)
        self.status = status

    @property
    def is_missing(self) -> bool:
        """Does the engine run, and only not have what was asked for?"""
        return self.status in (404, 405, 501)


class EngineProtocolError(EngineError):
    """The engine's answer does not follow the protocol that it claims to speak."""


class GradingError(FotError):
    """A grader cannot run at all. An answer that it cannot judge is a verdict, not an error."""


class MissingExtra(FotError):
    """An optional dependency is absent; ``extra`` is the group of this distribution that brings it."""

    def __init__(self, extra: str) -> None:
        super().__init__(
            f"this needs the optional dependencies '{extra}', which are not installed",
            f"pip install 'funnel-of-thoughts[{extra}]'",
        )
        self.extra = extra
