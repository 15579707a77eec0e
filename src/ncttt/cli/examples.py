"""A worked example of each command, shown at the end of its help; a test parses every one."""

from ncttt.cli.commands.data import check, corrupt, get, list, sheet

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": ("ncttt demo",),
    "demo": ("ncttt demo --seed 1",),
    "train": ("ncttt train --config configs/cpu/digits.yaml --out runs/digits --recipe.epochs 5",),
    "adapt": ("ncttt adapt --model digits-small-ncttt --images photos --out predictions.csv",),
    "tune": ("ncttt tune --config configs/tune/digits.yaml --random 4 --out runs/tune",),
    "bench": ("ncttt bench --config configs/bench/digits.yaml --seeds '[0, 1]' --store runs/bench.sqlite",),
    "rows": ("ncttt rows show runs/bench.sqlite",),
    "rows show": ("ncttt rows show runs/bench.sqlite",),
    "rows export": ("ncttt rows export runs/bench.sqlite runs/bench.csv",),
    "rows seed": ("ncttt rows seed runs/bench.sqlite runs/bench.csv",),
    "report": ("ncttt report runs/bench.sqlite --out runs/report",),
    "figures": ("ncttt figures method posterior --out runs/figures",),
    "info": ("ncttt info --json",),
    "data": ("ncttt data list",),
    "data list": (list.EXAMPLE,),
    "data get": (get.EXAMPLE,),
    "data check": (check.EXAMPLE,),
    "data corrupt": (corrupt.EXAMPLE,),
    "data sheet": (sheet.EXAMPLE,),
    "completion": ('eval "$(ncttt completion bash)"   # in ~/.bashrc',),
}
