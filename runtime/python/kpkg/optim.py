"""Offers optimizers whose step is one call for all parameters: AdamW, Adam, Lion and SGD.

    from kpkg.optim import AdamW
    optimizer = AdamW(model.parameters(), lr=3e-4, master_weights=True)

Arguments and the state_dict are those of `torch.optim`, so that checkpoints go from one to the other. With
``master_weights``, parameters of 16 bits have float32 weights and moments in their state. Steps are counted on the
device, and ``lr`` may be a tensor there, so that CUDA graphs contain steps.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from kpkg import _default

_HALVES = (torch.float16, torch.bfloat16)
_AT_ONCE = 500  # parameters of a call, whose plan has a limited length


class _Batch:
    """Holds the parameters of one call, with gradients, and state by name."""

    def __init__(self, first: Tensor, is_first: bool) -> None:
        self.device, self.is_first = first.device, is_first
        self.params: list[Tensor] = []
        self.grads: list[Tensor] = []
        self.state: dict[str, list[Tensor]] = {}


class _Optimizer(torch.optim.Optimizer):
    """Implements what the optimizers share: state, batches of parameters, and gradients scaled by a GradScaler."""

    #: Names of the tensors of a parameter's state that have its shape.
    moments: tuple[str, ...] = ()
    counts_steps = False

    def __init__(self, params: Any, lr: float | Tensor, master_weights: bool, **defaults: Any) -> None:
        for name, value in {"lr": lr, **defaults}.items():
            for number in value if isinstance(value, tuple) else (value,):
                if not float(number) >= 0.0:
                    raise ValueError(f"{name} is {value}, expected 0 or more")
        for beta in defaults.get("betas", ()):
            if beta >= 1.0:
                raise ValueError(f"betas are {defaults['betas']}, expected numbers less than 1")
        super().__init__(params, {"lr": lr, **defaults, "master_weights": master_weights})
        self._step_supports_amp_scaling = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("master_weights", False)  # checkpoints of torch.optim
        self._step_supports_amp_scaling = True
        self._merge_steps()

    def state_dict(self) -> dict[str, Any]:
        """Returns the state as `torch.optim` does: each parameter has a number of steps of its own."""
        found = super().state_dict()
        found["state"] = {
            number: {**state, "step": state["step"].clone()} if "step" in state else state
            for number, state in found["state"].items()
        }
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of an optimizer, of kpkg or of `torch.optim`.

        Args:
            state_dict: What its `state_dict` returned.
        """
        super().load_state_dict(state_dict)
        # PyTorch converts states to the dtypes of parameters, which float32 beside 16 bits is not.
        for own, saved in zip(self.param_groups, state_dict["param_groups"]):
            for p, number in zip(own["params"], saved["params"]):
                state = state_dict["state"].get(number, {})
                for name in ("master", *self._names(own)) if "master" in state else ():
                    self.state[p][name] = state[name].detach().to(p.device, torch.float32, copy=True)

    def _merge_steps(self) -> None:
        """Gives parameters with one number of steps one tensor for it, on their device."""
        ticks: dict[tuple[torch.device, float], Tensor] = {}
        for p, state in self.state.items():
            if self.counts_steps and "step" in state:
                key = (p.device, float(state["step"]))
                if key not in ticks:
                    ticks[key] = torch.full((), key[1], dtype=torch.float32, device=p.device)
                state["step"] = ticks[key]

    def _count(self, group: dict[str, Any], found: Tensor | None) -> None:
        """Counts the step of parameters with gradients. Those that rest keep their number."""
        moving = [(p, self.state[p]) for p in group["params"] if p.grad is not None]
        resting = {id(state.get("step")) for p, state in self.state.items() if p.grad is None}
        counted: dict[tuple[torch.device, int], Tensor] = {}
        for p, state in moving:
            step = state.get("step")
            key = (p.device, id(step))
            tick = counted.get(key)
            if tick is None:
                if step is None:
                    tick = torch.zeros((), device=p.device)
                else:
                    tick = step.clone() if id(step) in resting else step
                counted[key] = tick.add_(1 if found is None else 1 - found.to(p.device).reshape(()))
            state["step"] = tick

    def _start(self, p: Tensor, state: dict[str, Any], names: tuple[str, ...], is_master: bool) -> None:
        """Makes the state that a parameter lacks."""
        if is_master and "master" not in state:
            state["master"] = p.detach().to(torch.float32, memory_format=torch.preserve_format)
        dtype = torch.float32 if is_master else p.dtype
        for name in names:
            if state.get(name) is None:
                state[name] = torch.zeros_like(p, dtype=dtype, memory_format=torch.preserve_format)

    def _batches(self, group: dict[str, Any]) -> Iterator[_Batch]:
        """Yields the parameters that have gradients, by device, kind of weights, and number of steps."""
        moments, has_masters = self._names(group), group["master_weights"]
        waiting: dict[Any, _Batch] = {}
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            dtype, state = p.dtype, self.state[p]
            is_master = has_masters and dtype in _HALVES
            names = (*moments, "master") if is_master else moments
            is_first = any(state.get(name) is None for name in names)
            if grad.is_sparse:
                raise RuntimeError(f"{type(self).__name__} takes dense gradients, not sparse ones")
            if is_first:
                self._start(p, state, moments, is_master)
            key = (p.device, is_master, is_first, id(state.get("step")))
            batch = waiting.get(key)
            if batch is None:
                batch = waiting[key] = _Batch(p, is_first)
                batch.state = {name: [] for name in (*names, *(("step",) if self.counts_steps else ()))}
            batch.params.append(p)
            batch.grads.append(grad if grad.dtype == dtype else grad.to(dtype))
            for name, listed in batch.state.items():
                listed.append(state[name])
            if len(batch.params) == _AT_ONCE:
                yield waiting.pop(key)
        yield from waiting.values()

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Returns the names of the moments that a parameter of the group has."""
        return self.moments

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves all parameters that have gradients.

        Args:
            closure: Computes the loss again, and returns it.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        for group in self.param_groups:
            lr = group["lr"]
            if self.counts_steps:
                self._count(group, found)
            for batch in self._batches(group):
                on_device = {"lr_tensor": lr if isinstance(lr, Tensor) else None, "grad_scale": scale}
                on_device["found_inf"] = found
                options = {k: v.to(batch.device, torch.float32) for k, v in on_device.items() if v is not None}
                if not isinstance(lr, Tensor):
                    options["lr"] = lr
                self._move(batch, group, batch.state.get("master", []), options)
        return loss

    def _move(self, batch: _Batch, group: dict[str, Any], masters: list[Tensor], options: dict[str, Any]) -> None:
        raise NotImplementedError


class AdamW(_Optimizer):
    """Implements `torch.optim.AdamW` without ``amsgrad``: Adam with decoupled weight decay.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate, a number or a float32 tensor on the device.
        betas: Coefficients of the means of gradients and of their squares.
        eps: Added to the root of the second mean.
        weight_decay: Times the learning rate, the share that a weight loses in a step.
        maximize: Whether steps go up.
        master_weights: Whether parameters of 16 bits have float32 weights in the state.
    """

    moments = ("exp_avg", "exp_avg_sq")
    counts_steps = True
    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        maximize: bool = False,
        master_weights: bool = False,
    ) -> None:
        super().__init__(params, lr, master_weights, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize)

    def _move(self, batch: _Batch, group: dict[str, Any], masters: list[Tensor], options: dict[str, Any]) -> None:
        _default.ops["kpkg::fused_adamw_"](
            batch.params,
            batch.grads,
            batch.state["exp_avg"],
            batch.state["exp_avg_sq"],
            masters,
            batch.state["step"][0],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=self.decoupled,
            maximize=group["maximize"],
            **options,
        )


class Adam(AdamW):
    """Implements `torch.optim.Adam` without ``amsgrad``: weight decay is a part of the gradient.

    Arguments are those of `AdamW`.
    """

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        master_weights: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, maximize=maximize, master_weights=master_weights)


class Lion(_Optimizer):
    """Implements Lion: weights move by the sign of a mean of gradients, with decoupled weight decay.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate, a number or a float32 tensor on the device.
        betas: Coefficients of the mean that gives the sign, and of the one that is kept.
        weight_decay: Times the learning rate, the share that a weight loses in a step.
        maximize: Whether steps go up.
        master_weights: Whether parameters of 16 bits have float32 weights in the state.
    """

    moments = ("exp_avg",)

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        master_weights: bool = False,
    ) -> None:
        super().__init__(params, lr, master_weights, betas=betas, weight_decay=weight_decay, maximize=maximize)

    def _move(self, batch: _Batch, group: dict[str, Any], masters: list[Tensor], options: dict[str, Any]) -> None:
        _default.ops["kpkg::fused_lion_"](
            batch.params,
            batch.grads,
            batch.state["exp_avg"],
            masters,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
            **options,
        )


class SGD(_Optimizer):
    """Implements `torch.optim.SGD`: stochastic gradient descent with momentum.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate, a number or a float32 tensor on the device.
        momentum: What the buffer keeps of itself in a step.
        dampening: What the buffer does not take of a gradient.
        weight_decay: Times the weight, what is added to the gradient.
        nesterov: Whether steps look ahead by Nesterov's method.
        maximize: Whether steps go up.
        master_weights: Whether parameters of 16 bits have float32 weights in the state.

    Raises:
        ValueError: A number is negative, or Nesterov's method has no momentum or is dampened.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        master_weights: bool = False,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs momentum and no dampening")
        super().__init__(
            params, lr, master_weights, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
            nesterov=nesterov, maximize=maximize,
        )  # fmt: skip

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def _move(self, batch: _Batch, group: dict[str, Any], masters: list[Tensor], options: dict[str, Any]) -> None:
        _default.ops["kpkg::fused_sgd_"](
            batch.params,
            batch.grads,
            batch.state.get("momentum_buffer", []),
            masters,
            momentum=group["momentum"],
            dampening=group["dampening"],
            weight_decay=group["weight_decay"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            is_first=batch.is_first,
            **options,
        )
