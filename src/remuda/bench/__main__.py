"""`python -m remuda.bench`, the same as `remuda bench`."""

import sys

from remuda.bench.arguments import main

if __name__ == "__main__":
    sys.exit(main())
