"""The preset of NC-TTT, chosen on validation images: learning rate, copies and crops, and what sets the size of a step.

    python study/preset_search.py --out runs/preset [--parts episodic,online,fast,failed]

Three trainings: the zoo's model, and the same training with seeds 1 and 2 (`results/checkpoints`, made by
`ncttt train --config cifar10-ncttt --recipe.seed 1 --out ...`). Held-out training images under each of the four extra
corruptions at severity 5, in batches of 128: 2,000 episodic, and streams of 4,000. Killed, it goes on where it was.
Every trial goes to results/tuning/preset.csv, with the mean over the trainings in results/tables/preset_search.md.
"""
