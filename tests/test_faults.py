"""Proof that the checks can fail: each planted fault breaks at least one of them."""

import math
from contextlib import nullcontext

import pytest
import torch

import branch_checks
import ncttt
import ncttt.adapt.adapter
import noise_checks
import prediction_checks
import reconstruction_checks
import stream_checks
import teacher_checks
from contract import PrototypeToy
from ncttt.adapt import arguments
from ncttt.methods import (
    clust3,
    cotta,
    deyo,
    eata,
    lame,
    memo,
    nc_ttt,
    note,
    roid,
    sar,
    shared_memory,
    t3a,
    tent,
    ttt,
    ttt_mae,
)
from ncttt.methods.nc_ttt import NCTTT
from ncttt.methods.nc_ttt.branch import NoiseHead
from ncttt.methods.sar import SAR
from ncttt.methods.ttt_flow.flow import Coupling
from ncttt.methods.ttt_plus import TTTPlus
from ncttt.model import certainty
from ncttt.model.snapshot import Snapshot
from ncttt.model.taps import Tap
from ncttt.noise import Gaussian, soft_label
from ncttt.testing import contract
from ncttt.testing.cases import Case, images, resnet


def shared_noise(monkeypatch):
    """Every sample of the batch gets the same vector."""
    sample = Gaussian.sample
    monkeypatch.setattr(
        Gaussian,
        "sample",
        lambda self, like, sigma, g=None: sample(self, like[:, :1], sigma, g).expand_as(like).clone(),
    )


def noise_grows_with_the_batch(monkeypatch):
    """Noise scaled by sqrt(B)."""
    sample = Gaussian.sample
    monkeypatch.setattr(
        Gaussian, "sample", lambda self, like, sigma, g=None: like.shape[1] ** 0.5 * sample(self, like, sigma, g)
    )


def swapped_labels(monkeypatch):
    monkeypatch.setattr(nc_ttt, "soft_label", lambda *args: 1 - soft_label(*args))


def two_passes(monkeypatch):
    """In-views and out-views each get a BatchNorm pass of their own."""
    discriminate = NoiseHead.discriminate
    monkeypatch.setattr(
        NoiseHead,
        "discriminate",
        lambda self, z, condition: torch.cat([discriminate(self, part, condition) for part in z.chunk(2)]),
    )


def trainable_head(monkeypatch):
    parameters = NCTTT.parameters
    monkeypatch.setattr(
        NCTTT, "parameters", lambda self, model: parameters(self, model) | dict(model.branch.named_parameters())
    )


def hook_left_behind(monkeypatch):
    monkeypatch.setattr(Tap, "_remove", lambda self: None)


def users_statistics_moved(monkeypatch):
    """The user's model sees a batch in training mode."""
    made_own = ncttt.adapt.adapter._own

    def faulty(model, method, copied):
        own = made_own(model, method, copied)
        modes = [module.training for module in model.modules()]
        model.train()(images(4))
        for module, mode in zip(model.modules(), modes, strict=True):
            module.training = mode
        return own

    monkeypatch.setattr(ncttt.adapt.adapter, "_own", faulty)


def head_statistics_of_the_test_batch(monkeypatch):
    made_own = ncttt.adapt.adapter._own

    def faulty(model, method, copied):
        own = made_own(model, method, copied)
        own.branch.train()
        return own

    monkeypatch.setattr(ncttt.adapt.adapter, "_own", faulty)


def softmax_over_the_batch(monkeypatch):
    """TENT's entropy of what a class gives to the images, not of what an image gives to the classes."""
    entropy = tent.mean_entropy
    monkeypatch.setattr(tent, "mean_entropy", lambda logits, copies=1: entropy(logits.T, copies))


def self_kept_among_the_neighbours(monkeypatch):
    monkeypatch.setattr(lame, "_without_self", lambda squared: squared)


def reshape_instead_of_transpose(monkeypatch):
    """Clusters that mix channels and positions."""
    monkeypatch.setattr(clust3, "as_positions", lambda maps: maps.reshape(len(maps), -1, maps.shape[1]))


def log_determinant_of_the_wrong_sign(monkeypatch):
    forward = Coupling.forward
    monkeypatch.setattr(Coupling, "forward", lambda self, rows: (forward(self, rows)[0], -forward(self, rows)[1]))


def shifted_rotation_labels(monkeypatch):
    rotate_all = ttt.rotate_all
    monkeypatch.setattr(ttt, "rotate_all", lambda images: (rotate_all(images)[0], rotate_all(images)[1].roll(1)))


def queue_not_declared_movable(monkeypatch):
    monkeypatch.setattr(TTTPlus, "buffers", lambda self, model: {})


def queue_kept_in_the_method(monkeypatch):
    def faulty(self, model, images):
        rows = model.branch.rows(model.features(images))
        joined = torch.cat([rows, *vars(self).get("past", [])])
        object.__setattr__(self, "past", [joined.detach()])
        return joined

    monkeypatch.setattr(TTTPlus, "_test_rows", faulty)


def loss_of_the_visible_patches(monkeypatch):
    """What is compared is what the encoder saw."""
    split = ttt_mae.random_split
    monkeypatch.setattr(ttt_mae, "random_split", lambda *sizes: split(*sizes)[::-1])


def one_mask_for_the_whole_batch(monkeypatch):
    split = ttt_mae.random_split
    monkeypatch.setattr(
        ttt_mae, "random_split", lambda *sizes: tuple(part[:1].expand_as(part) for part in split(*sizes))
    )


def hidden_patches_are_not_blanked(monkeypatch):
    """A convolutional stem sees them across the borders of the visible ones."""
    monkeypatch.setattr(ttt_mae, "blanked", lambda images, *hidden: images)


def gate_with_the_weights_of_the_stream(monkeypatch):
    monkeypatch.setattr(Snapshot, "saved", lambda self: nullcontext())


def gate_with_the_statistics_of_the_batch(monkeypatch):
    statistics = certainty.statistics
    monkeypatch.setattr(certainty, "statistics", lambda layers, policy: statistics(layers, "batch"))


def memory_that_survives_a_reset(monkeypatch):
    """The adapter takes the memory for something that does not move."""
    buffers = arguments.moving_buffers

    def faulty(method, model, statistics):
        found = buffers(method, model, statistics)
        return {name: tensor for name, tensor in found.items() if not name.startswith("memory.")}

    monkeypatch.setattr(arguments, "moving_buffers", faulty)


def memory_in_an_attribute(monkeypatch):
    """What is remembered is in no tensor, and is not seen in predictions yet."""
    remember = PrototypeToy.remember

    def faulty(self, model, images, prediction):
        remember(self, model, images, prediction)
        model.memory.seen = [*vars(model.memory).get("seen", []), len(images)]

    monkeypatch.setattr(PrototypeToy, "remember", faulty)


def memory_made_anew(monkeypatch):
    """A buffer is replaced by a new one, which no snapshot knows."""
    remember = PrototypeToy.remember

    def faulty(self, model, images, prediction):
        model.memory.counts = model.memory.counts.clone()
        remember(self, model, images, prediction)

    monkeypatch.setattr(PrototypeToy, "remember", faulty)


def margin_for_a_thousand_classes(monkeypatch):
    """The threshold of entropy does not know how many classes there are."""
    monkeypatch.setattr(eata, "log", lambda classes: math.log(1000))


def entropy_over_the_batch(monkeypatch):
    """ETA's entropy of what a class gives to the images, one for each class."""
    entropies = eata.entropies
    monkeypatch.setattr(eata, "entropies", lambda logits: entropies(logits.T).mean().expand(len(logits)))


def moving_mean_that_survives_a_reset(monkeypatch):
    """A reset puts back what moves by gradients, and the rest of the memory stays."""
    copy = Snapshot._copy

    def faulty(self, values):
        live = {name: tensor for name, tensor in self._live.items() if not name.startswith("memory.")}
        copy(Snapshot(live, None), values)

    monkeypatch.setattr(Snapshot, "_copy", faulty)


def memory_shared_by_all_adapters(monkeypatch):
    """One memory for a method wherever it is used, so that it leaks from one stream into another."""
    made = ncttt.ETA(margin=1.0).memory(ncttt.Branched(resnet(), None, ncttt.ETA()))
    monkeypatch.setattr(ncttt.ETA, "memory", lambda self, model: made)


def recovery_for_a_thousand_classes(monkeypatch):
    """SAR's loss is compared with a share of ln 1000."""
    move = sar.MeanLoss.move
    monkeypatch.setattr(sar.MeanLoss, "move", lambda self, share: move(self, share * math.log(5) / math.log(1000)))


def moving_mean_that_survives_its_own_reset(monkeypatch):
    """What the recovery resets is all but the mean by which it judges."""
    reset = Snapshot.reset

    def faulty(self):
        means = {name: tensor.clone() for name, tensor in self._live.items() if name == "memory.mean"}
        reset(self)
        for name, mean in means.items():
            self._live[name].copy_(mean)

    monkeypatch.setattr(Snapshot, "reset", faulty)


def gradient_at_the_weights_themselves(monkeypatch):
    """SAR without its way to the worst point nearby."""
    monkeypatch.setattr(SAR, "_moved_away", lambda self, model, loss: {})


def one_order_of_patches_for_the_batch(monkeypatch):
    shuffle = deyo.shuffled_patches
    monkeypatch.setattr(
        deyo, "shuffled_patches", lambda images, patches: shuffle(images.flatten(0, 1)[None], patches).view_as(images)
    )


def drop_of_another_class(monkeypatch):
    """The drop is taken for the least likely class."""
    drops = ncttt.DeYO._drops
    monkeypatch.setattr(ncttt.DeYO, "_drops", lambda self, model, images, logits: drops(self, model, images, -logits))


def logits_multiplied_by_the_prior(monkeypatch):
    monkeypatch.setattr(ncttt.ROID, "_corrected", lambda self, logits: logits * roid.smoothed_shares(logits))


def prior_over_the_wrong_axis(monkeypatch):
    """Shares of images in a class in place of shares of classes in the batch."""
    shares = roid.smoothed_shares
    monkeypatch.setattr(roid, "smoothed_shares", lambda logits: shares(logits.softmax(0).log()))


def weights_that_are_not_drawn_back(monkeypatch):
    monkeypatch.setattr(ncttt.ROID, "after_step", lambda self, model: None)


def mean_of_predictions_from_the_first_batch_on(monkeypatch):
    """The moving mean begins at nothing, so that the first batch is all of it."""
    monkeypatch.setattr(ncttt.ROID, "memory", lambda self, model: eata.MeanPrediction(5))


def supports_of_highest_entropy(monkeypatch):
    monkeypatch.setattr(t3a, "entropies", lambda logits: -tent.mean_entropy(logits) + 0 * logits.sum(1))


def supports_that_leak_into_the_next_domain(monkeypatch):
    """A reset puts back the features of the supports, and not how certain they were."""
    copy = Snapshot._copy

    def faulty(self, values):
        live = {name: tensor for name, tensor in self._live.items() if name != "memory.entropies"}
        copy(Snapshot(live, None), values)

    monkeypatch.setattr(Snapshot, "_copy", faulty)


def mean_of_logits_in_place_of_predictions(monkeypatch):
    """MEMO's views are averaged before the softmax."""
    monkeypatch.setattr(memo, "marginal_entropies", lambda logits: eata.entropies(logits.mean(1)))


def views_of_other_images(monkeypatch):
    """The views of one image are taken for one view each of all of them."""
    entropies = memo.marginal_entropies
    monkeypatch.setattr(memo, "marginal_entropies", lambda logits: entropies(logits.transpose(0, 1)))


def logits_averaged_over_views(monkeypatch):
    """CoTTA's teacher averages logits, as its published code does, and not predictions."""
    monkeypatch.setattr(cotta, "mean_prediction", lambda logits: torch.stack(logits).mean(0))


def teacher_that_survives_a_reset(monkeypatch):
    """The student goes back to the source, and its teacher does not."""
    moving_mean_that_survives_a_reset(monkeypatch)


def images_leak_between_domains(monkeypatch):
    """A reset forgets what was learned, and RoTTA's memory keeps the images of the last domain."""
    copy = Snapshot._copy

    def faulty(self, values):
        kept = ("memory.images", "memory.labels", "memory.waiting")
        copy(Snapshot({name: tensor for name, tensor in self._live.items() if name not in kept}, None), values)

    monkeypatch.setattr(Snapshot, "_copy", faulty)


def reservoir_leaks_between_domains(monkeypatch):
    """The same for NOTE's."""
    images_leak_between_domains(monkeypatch)


def ages_that_stand_still(monkeypatch):
    """RoTTA's remembered images never get older, so that the first ones stay."""
    places = shared_memory.AgedMemory.places

    def faulty(self, logits):
        taken = places(self, logits)
        self.ages.zero_()
        return taken

    monkeypatch.setattr(shared_memory.AgedMemory, "places", faulty)


def entropy_averaged_over_classes(monkeypatch):
    """As NOTE's published code does; Adam tells it by its epsilon alone, so the loss is looked at."""
    monkeypatch.setattr(note, "mean_entropy", lambda logits: -(logits.softmax(1) * logits.log_softmax(1)).mean())


def on_resnet(check, make=lambda: NCTTT(discriminator_norm=True)):
    return lambda: check(Case("resnet", make()))


NEAR = ncttt.ETA(redundancy=0.6)
TAUGHT = ncttt.CoTTA(kept=0.5, views=2)
ROTTA, NOTE = ncttt.RoTTA(capacity=8, every=12), ncttt.NOTE(capacity=8, every=12)
FAULTS = {
    shared_noise: noise_checks.check_noise_is_independent,
    noise_grows_with_the_batch: noise_checks.check_noise_has_its_scale,
    swapped_labels: noise_checks.check_discriminator_learns_the_right_side,
    two_passes: noise_checks.check_loss_equals_a_slow_one,
    trainable_head: on_resnet(contract.check_only_declared_tensors_move),
    hook_left_behind: on_resnet(contract.check_no_hooks_left),
    users_statistics_moved: on_resnet(contract.check_user_model_untouched),
    head_statistics_of_the_test_batch: noise_checks.check_head_uses_source_statistics,
    softmax_over_the_batch: prediction_checks.check_tent_gradient_by_finite_differences,
    self_kept_among_the_neighbours: prediction_checks.check_knn_graph_is_that_of_scikit_learn,
    reshape_instead_of_transpose: branch_checks.check_clusters_belong_to_positions,
    log_determinant_of_the_wrong_sign: branch_checks.check_log_determinant_by_jacobian,
    shifted_rotation_labels: branch_checks.check_rotation_labels,
    loss_of_the_visible_patches: reconstruction_checks.check_reconstruction_equals_a_slow_one,
    one_mask_for_the_whole_batch: reconstruction_checks.check_every_image_has_its_own_mask,
    hidden_patches_are_not_blanked: reconstruction_checks.check_hidden_pixels_are_not_seen,
    queue_not_declared_movable: on_resnet(contract.check_episodic_order_is_irrelevant, TTTPlus),
    queue_kept_in_the_method: on_resnet(contract.check_reset_is_exact, TTTPlus),
    memory_that_survives_a_reset: on_resnet(contract.check_reset_is_exact, PrototypeToy),
    memory_in_an_attribute: on_resnet(contract.check_memory_belongs_to_the_stream, PrototypeToy),
    memory_made_anew: on_resnet(contract.check_memory_belongs_to_the_stream, PrototypeToy),
    margin_for_a_thousand_classes: stream_checks.check_eta_equals_a_slow_one,
    entropy_over_the_batch: stream_checks.check_eta_equals_a_slow_one,
    moving_mean_that_survives_a_reset: lambda: stream_checks.check_domains_are_independent(NEAR),
    memory_shared_by_all_adapters: lambda: stream_checks.check_domains_are_independent(NEAR),
    recovery_for_a_thousand_classes: stream_checks.check_sar_recovers_by_the_number_of_classes,
    moving_mean_that_survives_its_own_reset: stream_checks.check_sar_recovers_by_the_number_of_classes,
    gradient_at_the_weights_themselves: stream_checks.check_sar_equals_a_slow_one,
    one_order_of_patches_for_the_batch: stream_checks.check_deyo_equals_a_slow_one,
    drop_of_another_class: stream_checks.check_deyo_equals_a_slow_one,
    logits_multiplied_by_the_prior: stream_checks.check_correction_is_on_probabilities,
    prior_over_the_wrong_axis: stream_checks.check_correction_is_on_probabilities,
    weights_that_are_not_drawn_back: stream_checks.check_roid_equals_a_slow_one,
    mean_of_predictions_from_the_first_batch_on: stream_checks.check_roid_equals_a_slow_one,
    supports_of_highest_entropy: stream_checks.check_t3a_equals_a_slow_one,
    supports_that_leak_into_the_next_domain: lambda: stream_checks.check_domains_are_independent(ncttt.T3A(k=3)),
    mean_of_logits_in_place_of_predictions: stream_checks.check_memo_equals_a_slow_one,
    views_of_other_images: stream_checks.check_memo_equals_a_slow_one,
    logits_averaged_over_views: teacher_checks.check_cotta_equals_a_slow_one,
    teacher_that_survives_a_reset: lambda: teacher_checks.check_a_reset_forgets_the_teacher(TAUGHT),
    images_leak_between_domains: lambda: stream_checks.check_domains_are_independent(ROTTA),
    reservoir_leaks_between_domains: lambda: stream_checks.check_domains_are_independent(NOTE),
    ages_that_stand_still: teacher_checks.check_rotta_equals_a_slow_one,
    entropy_averaged_over_classes: teacher_checks.check_note_s_loss,
    gate_with_the_weights_of_the_stream: on_resnet(contract.check_a_batch_like_the_source_is_left_to_it, ncttt.Tent),
    gate_with_the_statistics_of_the_batch: on_resnet(contract.check_a_batch_like_the_source_is_left_to_it, ncttt.PTBN),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(fault, monkeypatch):
    check = FAULTS[fault]
    check()
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        check()
