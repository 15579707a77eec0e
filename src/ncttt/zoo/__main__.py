"""`python -m ncttt.zoo RUN NAME`: put a finished training into the zoo."""

import sys

from ncttt.base.errors import InputError
from ncttt.zoo.shipped import ship

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        print(ship(*sys.argv[1:]))
    except InputError as error:
        sys.exit(f"ncttt: {error}")
