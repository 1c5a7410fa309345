"""`python -m remuda` is the command `remuda`."""

import sys

from remuda.cli import main

sys.exit(main())
