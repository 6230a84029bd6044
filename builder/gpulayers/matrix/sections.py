"""The tables of a matrix.toml, one function each."""

from collections.abc import Mapping
from pathlib import Path

from gpulayers.matrix import apps, fields, models, rules, tags
from gpulayers.matrix.model import (
    AXES,
    NO_MODEL,
    PLAIN_INDEX,
    Axes,
    Base,
    Budget,
    Cell,
    Exclude,
    FrameworkOptions,
    Host,
    Images,
    Matrix,
    Recipe,
)
from gpulayers.matrix.shape import Table, nearest, quoted
from gpulayers.refs import Platform

_USER = "10001:0"


def matrix(document: Table, *, path: Path, root: Path) -> Matrix:
    """The matrix that a document says; where the report has problems, one with gaps."""
    axes = _axes(document.sub("axes"))
    includes = _includes(document.rows("include"))
    found = Matrix(
        path=path,
        images=_images(document.sub("images")),
        fleet=tuple(_host(name, table) for name, table in document.named("fleet", rules.HOST_NAME)),
        axes=axes,
        excludes=tuple(_exclude(table) for table in document.rows("exclude")),
        includes=includes,
        bases={name: _base(name, table) for name, table in document.named("base", rules.OS)},
        pythons=_pythons(document),
        models=models.read(document, root),
        apps=apps.read(document, root),
        frameworks={
            name: _framework(table)
            for name, table in document.named("framework", rules.FRAMEWORK_NAME)
        },
        budget=_budget(document.sub("budget")),
        recipe=_recipe(document.sub("recipe")),
        source=document.report.source,
    )
    document.close()
    return found


def _images(table: Table) -> Images:
    found = Images(
        name=table.need("name", rules.REPOSITORY) or "",
        registry=table.need("registry", rules.REGISTRY) or "",
        tag=table.one("tag", rules.FILLED),
        channels=table.many("channels", rules.CHANNEL, least=1, default=("edge", "stable")),
        platforms=table.many(
            "platforms", rules.PLATFORM, least=1, default=(Platform("linux", "amd64"),)
        ),
        os_packages=table.many("os-packages", rules.OS_PACKAGE, default=()),
        user=table.one("user", rules.USER) or _USER,
        env=fields.env(table),
    )
    _check_template(table, found.tag)
    table.close()
    return found


def _check_template(table: Table, template: str | None) -> None:
    if template is None:
        return
    for name in tags.fields(template):
        if name not in AXES:
            table.add(
                "tag", wanted="axis names in { }", found=quoted(name), hint=nearest(name, AXES)
            )
    if not tags.is_plain(template):
        table.add(
            "tag",
            wanted="letters, digits, _ . - and axis names in { }",
            found=quoted(template),
            hint="a tag has no other characters",
        )


def _host(name: str, table: Table) -> Host:
    driver = table.need("driver", rules.FILLED) or ""
    gpus = table.many("gpus", rules.FILLED, least=1)
    table.close()
    return Host(name=name, driver=driver, gpus=gpus)


def _axes(table: Table) -> Axes:
    found = Axes(
        os=table.many("os", rules.OS, least=1),
        python=table.many("python", rules.PYTHON, least=1),
        cuda=table.many("cuda", rules.CUDA, least=1),
        framework=table.many("framework", rules.FRAMEWORK, least=1),
        model=table.many("model", rules.MODEL, least=1, default=(NO_MODEL,)),
    )
    table.close()
    return found


def _exclude(table: Table) -> Exclude:
    told = len(table.report.problems)
    match = fields.match(table)
    if not match and told == len(table.report.problems):
        table.add("match", wanted="at least one axis = glob", found="nothing")
    reason = table.need("reason", rules.FILLED) or ""
    table.close()
    return Exclude(match=match, reason=reason, line=table.report.source.line(table.path))


def _includes(tables: tuple[Table, ...]) -> tuple[Cell, ...]:
    found = (_include(table) for table in tables)
    return tuple(cell for cell in found if cell is not None)


def _include(table: Table) -> Cell | None:
    os = table.need("os", rules.OS)
    python = table.need("python", rules.PYTHON)
    cuda = table.need("cuda", rules.CUDA)
    framework = table.need("framework", rules.FRAMEWORK)
    model = table.need("model", rules.MODEL)
    table.close()
    if os is None or python is None or cuda is None or framework is None or model is None:
        return None
    return Cell(os=os, python=python, cuda=cuda, framework=framework, model=model)


def _base(name: str, table: Table) -> Base:
    sources = table.many("sources", rules.BASE_SOURCE, least=1)
    suite = table.one("suite", rules.SUITE) or ""
    packages = table.many("os-packages", rules.OS_PACKAGE, default=())
    table.close()
    return Base(os=name, sources=sources, suite=suite, os_packages=packages)


def _pythons(document: Table) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, table in document.named("python", rules.PYTHON_NAME):
        if rules.PYTHON_NAME.parse(name) is None:
            continue  # [python.3.11]: what is below was never meant as keys
        found[name] = table.many("sources", rules.PYTHON_SOURCE, least=1, default=("standalone",))
        table.close()
    return found


def _framework(table: Table) -> FrameworkOptions:
    components = (
        table.many("cuda-components", rules.COMPONENT) if table.has("cuda-components") else None
    )
    if components is None:
        table.take("cuda-components")
    requirements = table.many("requirements", rules.REQUIREMENT, default=())
    indexes = table.many("indexes", rules.INDEX, least=1, default=(PLAIN_INDEX,))
    table.close()
    return FrameworkOptions(cuda_components=components, requirements=requirements, indexes=indexes)


def _budget(table: Table) -> Budget:
    found = Budget(
        image_mb=table.number("image-mb", least=1),
        layer_mb=table.number("layer-mb", least=1),
        growth_mb=table.number("growth-mb", least=0),
        duplicate_mb=table.number("duplicate-mb", least=0) or 0,
    )
    table.close()
    return found


def _recipe(table: Table) -> Recipe:
    found = Recipe(
        big_wheel_mb=table.number("big-wheel-mb", least=1) or 40,
        max_layers=table.number("max-layers", least=5, most=120) or 40,
        model_layer_mb=table.number("model-layer-mb", least=1) or 1000,
    )
    table.close()
    return found
