"""Compiles scalar functions to WebAssembly: numba to LLVM's language, then LLVM's own WebAssembly target.

numba compiles each entry point for a generic processor. Its LLVM module gets WebAssembly's triple and data layout, is
optimised once more and becomes an object. `module_file` turns that into a module, so no linker is needed.

Compiled functions take arrays that lie at fixed addresses of the module's memory: `placed` makes them from the arrays
of a `Layout`. So all shapes and addresses are constants in the code, and entry points take and return numbers alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import typing
from numba.core.codegen import AOTCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUTarget, cpu_target
from numba.core.runtime import rtsys
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_override, target_registry
from numba.extending import intrinsic

from alphazero.errors import GameError
from alphazero.game.functions import rebuilt
from alphazero.search.tree import Memory
from alphazero.wasm.mathematics import FUNCTIONS
from alphazero.wasm.module_file import FIRST_ADDRESS, make_module

NAME = "alphazero.wasm"
TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+simd128,+bulk-memory,+sign-ext,+nontrapping-fptoint,+mutable-globals"
"""Parts of WebAssembly that every browser has had since March 2023."""
ALIGNMENT = 16


class _Codegen(AOTCPUCodegen):
    """Makes no vectors: LLVM's passes for WebAssembly do, which know what they cost there.

    With the vectors of a processor that can shift each number by its own count, random Nim was 1.7 times slower.
    """

    def _pass_builder(self, **settings: Any) -> Any:
        return super()._pass_builder(**settings | {"loop_vectorize": False, "slp_vectorize": False})


class _Context(CPUContext):
    """numba's own, but with the instructions that every processor has, and code that Python never calls."""

    def init(self) -> None:
        super().init()
        self._internal_codegen = _Codegen(NAME, cpu_name="generic")

    def load_additional_registries(self) -> None:
        # numba makes its runtime once, with the first context that compiles: that must be the processor's, whose
        # functions would else link with code that cannot be run
        rtsys.initialize(cpu_target.target_context)
        super().load_additional_registries()

    def get_executable(self, library: Any, description: Any, environment: Any) -> object:
        return object()  # numba knows the compiled function by it


class _Target(CPUTarget):
    """Contexts of our own, so that code for WebAssembly and for this processor never mix."""

    @functools.cached_property
    def _toplevel_target_context(self) -> Any:
        return _Context(self.typing_context, self._target_name)

    @functools.cached_property
    def _toplevel_typing_context(self) -> Any:
        return typing.Context()


class _Function(Dispatcher):
    """A function that is compiled for WebAssembly alone, and cannot be called from Python."""

    targetdescr = _Target(NAME)

    def add_overload(self, result: Any) -> None:
        self.overloads[result.signature.args] = result


class _WebAssembly(CPU):  # type: ignore[misc]
    """numba's name for what it compiles for: all that it knows for processors is known for this, too."""


def _jit(function: Any = None, **options: Any) -> Any:
    """The decorator that numba puts on its own functions, such as `int`, where compiled code calls them."""
    return _Function(function, targetoptions=options) if function else functools.partial(_jit, **options)


target_registry[NAME] = _WebAssembly
dispatcher_registry[_WebAssembly] = _Function
jit_registry[_WebAssembly] = _jit


EntryPoint = tuple[Any, tuple[Any, ...]]
"""A function that the page may call: of numbers, made by `compiled_as`; and numba's types of its arguments."""


def compiled_as(error_model: str) -> Callable[[Any], Any]:
    """Gives the functions that `functions.rebuilt` wants: they make a Python function part of a module.

    `error_model` is numba's: with "python" a division by zero stops the module, with "numpy" it gives inf or nan.
    """
    return _jit(nopython=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model=error_model)


class Layout(Memory):
    """A module's memory: arrays side by side, each at an address that is known while compiling.

    The arrays are numpy's, and only their types, shapes and places count.
    """

    def __init__(self) -> None:
        self.size = 0
        """Bytes that are in use."""
        self._places: dict[int, tuple[int, np.ndarray]] = {}
        """By numpy's addresses the module's, and the arrays, which are kept so that no other gets the place of one."""

    def zeros(self, shape: tuple[int, ...], kind: Any) -> np.ndarray:
        array = np.zeros(shape, kind)
        self._places[array.ctypes.data] = FIRST_ADDRESS + self.size, array
        self.size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        return array

    def address(self, array: np.ndarray) -> int:
        """The address of an array of this memory, or of a part of one."""
        start = array.ctypes.data
        owner = max(base for base in self._places if base <= start)
        return self._places[owner][0] + start - owner

    def placed(self, arrays: Any) -> Any:
        """A function that gives the arrays, a named tuple, to compiled code."""
        kind = typeof(arrays)
        addresses = [self.address(array) for array in arrays]

        def give(typing_context: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                made = [
                    _constant_array(context, builder, part, array, address)
                    for part, array, address in zip(kind.types, arrays, addresses, strict=True)
                ]
                return context.make_tuple(builder, kind, made)

            return kind(), generate

        return intrinsic(give)


def _constant_array(context: Any, builder: Any, kind: Any, array: np.ndarray, address: int) -> Any:
    """numba's array with constants for its address, shape and strides."""
    made = context.make_array(kind)(context, builder)
    pointer = ir.Constant(ir.IntType(64), address).inttoptr(made.data.type)
    numbers = types.UniTuple(types.intp, array.ndim)
    shape, strides = (context.get_constant_generic(builder, numbers, of) for of in (array.shape, array.strides))
    itemsize = context.get_constant(types.intp, array.itemsize)
    context.populate_array(made, data=pointer, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return made._getvalue()


@global_compiler_lock
def compile_module(entry_points: Mapping[str, EntryPoint], memory_bytes: int) -> bytes:
    """A WebAssembly module without imports, with the entry points as exports, and its `memory`.

    Raises numba's errors for what it cannot compile, and GameError for code that needs more than the module has.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu="generic", features=FEATURES, opt=3, reloc="static", codemodel="default"
    )
    whole = _optimised(entry_points, machine)
    # powers and the like, if they are still called
    called = {part.name.removeprefix("llvm.").removesuffix(".f64") for part in whole.functions if part.is_declaration}
    for name in sorted(called & FUNCTIONS.keys()):
        function, count = FUNCTIONS[name]
        entry = rebuilt(function, compiled_as("numpy"), {}), (types.float64,) * count
        whole.link_in(_optimised({name: entry}, machine))
    return make_module(machine.emit_object(whole), tuple(entry_points), memory_bytes)


def _optimised(entry_points: Mapping[str, EntryPoint], machine: Any) -> llvm.ModuleRef:
    """One module for WebAssembly of all entry points, in which nothing else can be seen from outside."""
    whole = llvm.parse_assembly("")
    for name, entry in entry_points.items():
        whole.link_in(_entry_module(name, entry))
    # the size of pointers changes here: nothing before has made code for it
    whole.triple, whole.data_layout = TRIPLE, str(machine.target_data)
    for part in (*whole.functions, *whole.global_variables):
        if not part.is_declaration and part.name not in entry_points:
            part.linkage = "internal"
        if part.name.startswith("numba.dynamic.globals"):
            raise GameError("the code uses an array of constants that is not contiguous, or above 1 MB")
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes = builder.getModulePassManager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(whole, builder)
    return whole


def _entry_module(name: str, entry: EntryPoint) -> llvm.ModuleRef:
    """The module of one function, with a function of the plain name around it, which stops at an error of Python's."""
    function, arguments = entry
    with target_override(NAME):
        function.compile(arguments)
    found = function.overloads[arguments]
    context, description = found.target_context, found.fndesc
    wrapper = ir.Module(name)
    wrapper.triple, wrapper.data_layout = llvm.get_process_triple(), context.codegen()._data_layout
    kind = context.call_conv.get_function_type(description.restype, description.argtypes)
    native = ir.Function(wrapper, kind, description.llvm_func_name)
    returned = description.restype
    plain_kind = ir.FunctionType(
        ir.VoidType() if returned is types.none else context.get_value_type(returned),
        [context.get_value_type(argument) for argument in description.argtypes],
    )
    plain = ir.Function(wrapper, plain_kind, name)
    builder = ir.IRBuilder(plain.append_basic_block())
    status, value = context.call_conv.call_function(builder, native, returned, description.argtypes, plain.args)
    stop = wrapper.declare_intrinsic("llvm.trap", (), ir.FunctionType(ir.VoidType(), ()))
    with builder.if_then(status.is_error, likely=False):
        builder.call(stop, ())
    if returned is types.none:
        builder.ret_void()
    else:
        builder.ret(value)
    module = llvm.parse_assembly(str(wrapper))
    module.link_in(found.library._get_module_for_linking(), preserve=True)
    return module
