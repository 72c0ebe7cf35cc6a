"""Registries by name, in which built-ins and plug-ins register in the same way."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from threading import RLock
from types import ModuleType
from typing import Generic, TypeVar

from pcs_annotator.base.errors import UnknownNameError, warn_user
from pcs_annotator.base.text import did_you_mean

_PACKAGE = "pcs_annotator."

T = TypeVar("T")
Factory = Callable[[], T]
F = TypeVar("F", bound=Callable[..., object])


class Registry(Generic[T]):
    """Factories by name, from decorators and from the entry points of installed packages.

    A package adds to a registry by naming a module, class or function in `pyproject.toml`::

        [project.entry-points."pcs_annotator.optimisers"]
        my-optimiser = "my_package:MyOptimiser"

    Built-in modules are imported at the first request for a name, and entry points are looked up at the first request
    for a name that is not built in, so that importing stays light.

    Args:
        kind: What it holds, for messages.
        group: The group of entry points that adds to it.
        built_in: Modules whose decorators register the built-in names.
    """

    def __init__(self, kind: str, group: str, built_in: Sequence[str] = ()) -> None:
        self.kind = kind
        self.group = group
        self._built_in = list(built_in)
        self._factories: dict[str, Factory[T]] = {}
        self._plugins_loaded = False
        self._loading = RLock()

    def register(self, name: str) -> Callable[[F], F]:
        """Return a decorator that registers a class or function as `name`."""

        def decorate(factory: F) -> F:
            if not str(factory.__module__).startswith(_PACKAGE):  # another's name must not take that of a built-in
                self._load_built_in()
            registered = self._factories.get(name)
            if registered is not None and registered is not factory:
                raise ValueError(f"{self.kind} {name!r} is already registered as {registered!r}; choose another name")
            self._factories[name] = factory  # type: ignore[assignment]  # a class is a factory of its instances
            return factory

        return decorate

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        self._load_built_in()
        self._load_plugins()
        return sorted(self._factories)

    def has(self, name: str) -> bool:
        """Return whether something is registered under that name; packages are searched only if it is not built in."""
        for load in (self._load_built_in, self._load_plugins):
            if name not in self._factories:
                load()
        return name in self._factories

    def check(self, name: str) -> None:
        """Raise when nothing is registered under that name."""
        if not self.has(name):
            raise UnknownNameError(self.unknown(name))

    def create(self, name: str) -> T:
        """Return what the factory of that name makes."""
        self.check(name)
        return self._factories[name]()

    def unknown(self, name: str) -> str:
        """Return that nothing is called like this, and what is."""
        bare = (full.partition(":")[2] for full in self._factories)
        hint = did_you_mean(name, [*self._factories, *filter(None, bare)])
        return f"no {self.kind} is called {name!r}; {hint}known: {', '.join(sorted(self._factories))}"

    def _load_built_in(self) -> None:
        with self._loading:  # a second thread waits until the first has loaded everything
            while self._built_in:
                import_module(self._built_in.pop())

    def _load_plugins(self) -> None:
        with self._loading:
            if not self._plugins_loaded:
                self._plugins_loaded = True
                self._register_entry_points()

    def _register_entry_points(self) -> None:
        for point in entry_points(group=self.group):
            try:
                loaded = point.load()
                if not isinstance(loaded, ModuleType):  # loading a module has run the decorators in it
                    self.register(point.name)(loaded)
            except Exception as error:  # a broken plug-in must not stop the program
                message = f"{self.kind} {point.name!r} from {point.value!r} could not be loaded and is ignored: {error}"
                warn_user(message)
