"""`python -m ncttt.zoo RUN NAME`: put a finished training into the zoo."""

import sys

from ncttt.zoo import ship

if __name__ == "__main__":
    print(ship(*sys.argv[1:3]))
