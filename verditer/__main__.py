"""`python -m verditer` is the command `verditer`."""

import sys

from verditer.cli import main

sys.exit(main())
