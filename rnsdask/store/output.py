"""The place of a job's output, and the decision there: begin, go on, or done.

Four names identify arrays and their writers. The states of a place are in :mod:`.target`.

=======  ===================  =====================================================================
name     in files             meaning
=======  ===================  =====================================================================
token    ``writer``           random text: the one writer that may publish files of an array
job      ``recipe``, ``job``  hash of all that determines the values, by which a job knows its own; what it
                              is of is beside it (``recipe_of``, ``job_of``), for messages alone
content  ``content``          hash of the checksums of all chunks
version  none                 state that a reader has opened: it changes whenever the array does
=======  ===================  =====================================================================
"""

from dataclasses import dataclass
from enum import Enum

from rnsdask.store.attributes import check_job
from rnsdask.store.identity import Identity
from rnsdask.store.job import is_begun_by, is_completed_by
from rnsdask.store.location import Location
from rnsdask.store.metadata import load
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.space import check_can_write
from rnsdask.store.target import exists, find_begun, nothing_to_resume, settle, target_at


class Decision(Enum):
    """Next step of a job at the place of its output."""

    BEGIN = "begin"
    GO_ON = "go on"
    DONE = "done"


@dataclass(frozen=True)
class Output:
    """An array that a job writes.

    Attributes
    ----------
    path : StorePath
        Place of the array, as :func:`.locate` takes it.
    job : Identity or None
        All that determines its values; None if that cannot be identified again, such as standard input.
    overwrite, resume : bool
        Whether an existing array may be replaced, and whether the job resumes what it has begun.
    """

    path: StorePath
    job: Identity | None = None
    overwrite: bool = False
    resume: bool = False

    @property
    def place(self) -> Location:
        """The place of the array."""
        return locate(self.path)

    def decide(self) -> Decision:
        """Inspect the place and decide; only renames that a killed job has left are finished there.

        A job that may resume is done if this very array is there, complete and unchanged. It goes on with an
        array that it has begun, or with any incomplete one that it may not overwrite: resuming then checks
        the owner. Otherwise it begins. StoreError if another complete array is there and may not be replaced.
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
        """Decide, and raise StoreError unless the job can begin or go on, as far as can be seen in advance.

        For results that take long to compute and are written at the end.
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
