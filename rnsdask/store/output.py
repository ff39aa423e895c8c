"""The place of a job's output, and the decision there: to begin, to go on, or that it is done.

Four names tell apart what is written. The states of a place are in :mod:`.target`.

=======  ===================  =====================================================================
name     in files             meaning
=======  ===================  =====================================================================
token    ``writer``           a random text: the one writer that may publish files of an array
job      ``recipe``, ``job``  hash of all that the values follow from, by which a job knows its own
content  ``content``          hash of the checksums of all chunks
version  none                 what a reader has opened: it changes whenever the array does
=======  ===================  =====================================================================
"""

from dataclasses import dataclass
from enum import Enum

from rnsdask.store.attributes import check_job
from rnsdask.store.job import is_begun_by, is_completed_by
from rnsdask.store.location import Location
from rnsdask.store.metadata import load
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.space import check_can_write
from rnsdask.store.target import exists, find_begun, nothing_to_resume, settle, target_at


class Decision(Enum):
    """Steps that a job takes at the place of its output."""

    BEGIN = "begin"
    GO_ON = "go on"
    DONE = "done"


@dataclass(frozen=True)
class Output:
    """An array that a job writes.

    Attributes
    ----------
    path : StorePath
        Its place, as :func:`.locate` takes it.
    job : str or None
        Hash of all that its values follow from; None if they follow from what leaves no trace, such as
        standard input.
    overwrite, resume : bool
        Whether what is there may be replaced, and whether the job goes on with what it has begun.
    """

    path: StorePath
    job: str | None = None
    overwrite: bool = False
    resume: bool = False

    @property
    def place(self) -> Location:
        """The place of the array."""
        return locate(self.path)

    def decide(self) -> Decision:
        """Look at the place, and finish what a killed job has left to rename there; nothing else changes.

        A job that may resume is done if this very array is there, complete and unchanged. It goes on with one
        that it has begun; with any incomplete one, unless it may overwrite that: then what goes on checks
        whose it is. Else it begins. StoreError if something else is complete there, and stays.
        """
        if not self.resume:
            return Decision.BEGIN
        place = self.place.check_writable()
        settle(place)
        if is_begun_by(place, self.job):
            return Decision.GO_ON
        if is_completed_by(place, self.job, overwrite=self.overwrite):
            return Decision.DONE
        return Decision.GO_ON if exists(place) and not self.overwrite else Decision.BEGIN

    def check(self) -> Decision:
        """Decide, and raise StoreError unless the job can begin or go on, as far as that shows before.

        For what takes long to compute, and is written at the end.
        """
        decision = self.decide()
        if decision is Decision.BEGIN:
            check_can_write(target_at(self.place, self.overwrite).staged)
        elif decision is Decision.GO_ON:
            begun = find_begun(self.place)
            if load(begun)[1]:
                raise nothing_to_resume(self.place.path)
            check_job(begun, self.job)
            check_can_write(begun)
        return decision
