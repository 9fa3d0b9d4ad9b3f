"""`python -m airmile`: the command."""

import sys

from airmile._command import main

sys.exit(main())
