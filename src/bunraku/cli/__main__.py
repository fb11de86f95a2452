"""`python -m bunraku.cli` is the command `bunraku`."""

import sys

from bunraku.cli import main

sys.exit(main())
