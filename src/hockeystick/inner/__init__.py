"""Steps whose pair is read off the curves of other runs: they stand above the queries, which they ask. Importing this
folder enters them into the table of pairs."""

from . import replacement as replacement
from . import selection as selection
