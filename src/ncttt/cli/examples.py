"""A worked example of each command, shown at the end of its help; a test parses every one."""

from ncttt.cli.commands import bench, tune
from ncttt.cli.commands.rows import export, seed, show

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": ("ncttt demo",),
    "demo": ("ncttt demo --seed 1",),
    "train": ("ncttt train --config configs/cpu/digits.yaml --out runs/digits --recipe.epochs 5",),
    "adapt": ("ncttt adapt --model digits-small-ncttt --images photos --out predictions.csv",),
    "tune": (tune.EXAMPLE,),
    "bench": (bench.EXAMPLE,),
    "rows": (show.EXAMPLE,),
    "rows show": (show.EXAMPLE,),
    "rows export": (export.EXAMPLE,),
    "rows seed": (seed.EXAMPLE,),
    "report": ("ncttt report runs/bench.sqlite --out runs/report",),
    "figures": ("ncttt figures method posterior --out runs/figures",),
    "info": ("ncttt info --json",),
    "data": ("ncttt data list",),
    "data list": ("ncttt data list --root datasets",),
    "data get": ("ncttt data get cifar10",),
    "data check": ("ncttt data check cifar10",),
    "data corrupt": ("ncttt data corrupt digits --out digits-c --corruptions fog,contrast --severity 3,5",),
    "data sheet": ("ncttt data sheet digits --out corruptions.png",),
    "completion": ('eval "$(ncttt completion bash)"   # in ~/.bashrc',),
}
