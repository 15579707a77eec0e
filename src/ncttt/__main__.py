"""`python -m ncttt` is the command `ncttt`."""

from ncttt.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
