"""The names of the classes, in the order of their labels."""

_CIFAR10 = """
airplane automobile bird cat deer dog frog horse ship truck
"""
_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel
can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion
lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree
pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea
seal shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
_VISDA = """
aeroplane bicycle bus car horse knife motorcycle person plant skateboard train truck
"""

CIFAR10 = tuple(_CIFAR10.split())
CIFAR100 = tuple(_CIFAR100.split())
VISDA = tuple(_VISDA.split())
