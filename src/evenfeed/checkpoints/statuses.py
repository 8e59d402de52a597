"""What `restore` returns: checks of what was restored."""

from typing import NoReturn, Self, final

from evenfeed.checkpoints.restoring import Restoration, listed
from evenfeed.core.errors import described


@final
class LoadStatus:
    """Checks what a restored checkpoint has changed.

    Args:
        restoration: The restore.
    """

    def __init__(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> Self:
        """Check that every value of the checkpoint was restored, and every object of the program.

        Raises:
            AssertionError: Some were not; the message names them.
        """
        self.assert_existing_objects_matched()
        unused = self._restoration.unused
        if unused:
            raise AssertionError(
                described(
                    f"The checkpoint has values that no object of the program has taken: {listed(unused)}.",
                    fix="create these objects first, or call expect_partial() if you do not need them.",
                )
            )
        return self

    def assert_existing_objects_matched(self) -> Self:
        """Check that every object of the program has a value in the checkpoint.

        Raises:
            AssertionError: Some have none; the message names them.
        """
        self._restoration.match_all()
        missing = [live.path for live in self._restoration.unrestored()]
        if missing:
            raise AssertionError(
                described(
                    f"The checkpoint has no values for these objects of the program: {listed(missing)}.",
                    fix="compare the names with evenfeed.train.list_variables(path).",
                )
            )
        return self

    def assert_nontrivial_match(self) -> Self:
        """Check that something was restored.

        Raises:
            AssertionError: Nothing was.
        """
        self._restoration.match_all()
        if self._restoration.matches_nothing:
            raise AssertionError(
                described(
                    "The checkpoint and the program have no object in common.",
                    fix="use the names of the program that saved it: evenfeed.train.list_variables(path).",
                )
            )
        return self

    def expect_partial(self) -> Self:
        """Do not warn if values of the checkpoint are never restored."""
        self._restoration.ignore_unused()
        return self

    def run_restore_ops(self, session: object = None) -> None:
        """Do nothing: values are restored at once."""

    def initialize_or_restore(self, session: object = None) -> None:
        """Do nothing: values are restored at once."""


@final
class NothingStatus:
    """What `restore(None)` returns: nothing was restored."""

    def assert_consumed(self) -> NoReturn:
        """Raise: there was no checkpoint."""
        raise AssertionError(
            described(
                "There was no checkpoint to restore: the path is None.",
                fix="check that latest_checkpoint found one before you call this.",
            )
        )

    assert_existing_objects_matched = assert_consumed
    assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> Self:
        """Return this status."""
        return self

    def run_restore_ops(self, session: object = None) -> NoReturn:
        """Raise: there was no checkpoint."""
        del session
        self.assert_consumed()

    def initialize_or_restore(self, session: object = None) -> None:
        """Do nothing: variables have their initial values."""
