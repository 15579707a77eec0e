"""`python -m ncttt.zoo RUN NAME [OTHER]`: put a finished training into the zoo, but for the classifier of OTHER."""

import sys

from ncttt.base.errors import InputError
from ncttt.zoo.shipped import ship
from ncttt.zoo.stored import share_classifier

if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        folder = ship(*sys.argv[1:3])
        if len(sys.argv) == 4:
            share_classifier(folder, sys.argv[3])
        print(folder)
    except InputError as error:
        sys.exit(f"ncttt: {error}")
