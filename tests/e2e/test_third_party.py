"""Programs that were not written for us: the examples of scikit-learn, statsmodels and R, unmodified."""
import subprocess
from pathlib import Path

import pytest

SKLEARN, STATSMODELS, R = 'python-sklearn-doc', 'python-statsmodels-doc', 'r-base-core'


def debian_file(hood, package, name):
    """A file of a Debian package; fetched where the machine leaves documentation out when it installs."""
    if Path(name).exists():
        return Path(name)
    directory = hood.base / 'package'
    directory.mkdir()
    subprocess.run(f'apt-get download -q {package} && dpkg-deb -x *.deb .', shell=True, check=True, cwd=directory)
    return directory / name.lstrip('/')


def stage(hood, package, name):
    return hood.write(Path(name).name, debian_file(hood, package, name).read_bytes()).name


@pytest.mark.parametrize('script', [
    'cluster/plot_dbscan.py', 'decomposition/plot_pca_iris.py', 'classification/plot_digits_classification.py',
    'svm/plot_iris_svc.py', 'ensemble/plot_forest_importances.py',  # The last one with two processes.
])
def test_scikit_learn(hood, script):
    name = stage(hood, SKLEARN, f'/usr/share/doc/python-sklearn-doc/examples/{script}')
    result = hood.run(['python3', name])
    assert result.status == 0, (result, hood.log(result.json['id']))


@pytest.mark.parametrize('script', ['ols', 'gls', 'chi2_fitting', 'kernel_density', 'distributed_estimation'])
def test_statsmodels(hood, script):
    name = stage(hood, STATSMODELS, f'/usr/share/doc/python-statsmodels-doc/examples/python/{script}.py')
    result = hood.run(['python3', name])
    assert result.status == 0, (result, hood.log(result.json['id']))


@pytest.mark.parametrize('script, outputs', [
    ('base/demo/scoping.R', []), ('stats/demo/lm.glm.R', ['Rplots.pdf']), ('stats/demo/smooth.R', ['Rplots.pdf']),
    ('graphics/demo/image.R', ['Rplots.pdf']), ('graphics/demo/persp.R', ['Rplots.pdf'])])
def test_r(hood, script, outputs):
    name = stage(hood, R, f'/usr/lib/R/library/{script}')
    result = hood.run(['Rscript', name])
    assert result.status == 0, (result, hood.log(result.json['id']))
    assert [o['path'] for o in result.json['outputs']] == outputs


def test_r_parallel_with_workers_over_loopback(hood):
    result = hood.run(['Rscript', '-e', 'example("clusterApply", package = "parallel", ask = FALSE, run.donttest = TRUE)'])
    assert result.status == 0, (result, hood.log(result.json['id']))
    hood.write('fork.R', 'library(parallel)\nstopifnot(identical(unlist(mclapply(1:4, sqrt, mc.cores = 2)), sqrt(1:4)))\n')
    assert hood.run(['Rscript', 'fork.R']).status == 0


JOBLIB = '''
import tempfile
from joblib import Memory, Parallel, delayed
import numpy as np
big = np.arange(1 << 20, dtype=float)  # large enough to be shared through a file that is mapped
assert sum(Parallel(n_jobs=2)(delayed(np.sum)(big * k) for k in range(4))) == 6 * big.sum()
memory = Memory(tempfile.mkdtemp(), verbose=0)
assert memory.cache(np.sum)(big) == big.sum()
'''


def test_joblib_with_shared_arrays_and_a_cache(hood):
    result = hood.python(JOBLIB)
    assert result.status == 0, (result, hood.log(result.json['id']))


def test_figures_in_every_format(hood):
    result = hood.python('import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]); plt.title("ü")\n'
                         'for kind in ["png", "pdf", "svg"]: plt.savefig("figure." + kind)\n')
    assert result.status == 0, (result, hood.log(result.json['id']))
    assert [(o['path'], o['media_type']) for o in result.json['outputs']] == [
        ('figure.pdf', 'application/pdf'), ('figure.png', 'image/png'), ('figure.svg', 'image/svg+xml')]


def test_a_program_is_compiled_and_run_inside(hood):
    hood.write('hello.c', '#include <stdio.h>\nint main(void) { return puts("compiled inside") < 0; }\n')
    result = hood.run(['sh', '-c', 'cc -O2 -o hello "$0" && ./hello', 'hello.c'])
    assert result.status == 0 and hood.log(result.json['id']) == 'compiled inside\n', result
