"""Honest work of every kind that must pass under all locks: what people and their libraries do."""
import unittest

from keeper import BoxTest, for_each_user

# A program of its own, so that spawn and forkserver can import it.
PROGRAM = r'''
import asyncio, bz2, concurrent.futures as cf, fcntl, gzip, hashlib, json, logging, lzma, mmap, multiprocessing as mp, os, pathlib
import platform, queue, random, resource, secrets, select, shutil, signal, socket, sqlite3, ssl, subprocess, sys, tempfile, threading
import time, uuid, zipfile
import numpy as np, pandas as pd
from multiprocessing import shared_memory

def square(x): return x * x

def numbers():
    a = np.random.default_rng(0).normal(size=(300, 300))
    np.linalg.svd(a @ a.T); np.linalg.eig(a[:50, :50]); np.fft.fft2(a)
    np.save('a.npy', a); m = np.load('a.npy', mmap_mode='r+'); m[0, 0] = 1; m.flush()
    mm = np.memmap('b.dat', dtype='f4', mode='w+', shape=(100, 100)); mm[:] = 1; mm.flush()
    import scipy.linalg, scipy.optimize, scipy.sparse, scipy.stats
    scipy.optimize.minimize(lambda x: (x ** 2).sum(), np.ones(3)); scipy.stats.ttest_ind(a[0], a[1])

def tables():
    df = pd.DataFrame({'a': range(5000), 'b': np.random.rand(5000), 'c': ['x', 'y'] * 2500, 't': pd.date_range('2020', periods=5000, freq='h')})
    df.to_csv('x.csv'); back = pd.read_csv('x.csv', parse_dates=['t']); back.groupby('c').b.describe(); back.merge(df, on='a')
    pd.read_csv('x.csv', engine='pyarrow'); df.to_parquet('x.parquet'); pd.read_parquet('x.parquet'); df.to_json('x.json'); pd.read_json('x.json')
    df.to_excel('x.xlsx'); pd.read_excel('x.xlsx'); df.to_pickle('x.pkl'); pd.read_pickle('x.pkl')
    df.set_index('t').resample('D').b.mean().tz_localize('UTC').tz_convert('Europe/Berlin'); df.pivot_table(index='c', values='b')
    con = sqlite3.connect('db.sqlite'); con.execute('pragma journal_mode=wal'); df.to_sql('t', con); pd.read_sql('select c, avg(b) from t group by c', con); con.commit(); con.close()

def engines():
    import polars as pl, duckdb, pyarrow as pa, pyarrow.compute as pc, pyarrow.dataset as ds
    pl.read_csv('x.csv').lazy().group_by('c').agg(pl.col('b').mean()).collect()
    assert duckdb.sql("select count(*) from 'x.parquet'").fetchall()[0][0] == 5000
    pc.sum(pa.array(range(1000))); ds.dataset('x.parquet').to_table()
    import statsmodels.api as sm; sm.OLS(np.random.rand(50), sm.add_constant(np.random.rand(50))).fit()

def learning():
    from sklearn.cluster import KMeans
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    X, y = make_classification(200, 10, random_state=0)
    RandomForestClassifier(10, n_jobs=2).fit(X, y).score(X, y); LogisticRegression().fit(X, y); cross_val_score(LogisticRegression(), X, y, n_jobs=2); KMeans(3, n_init=2).fit(X)

def pictures():
    import matplotlib; matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    fig, ax = plt.subplots(2, 2); ax[0, 0].plot(range(9)); ax[0, 1].hist(np.random.rand(99)); ax[1, 1].imshow(np.eye(9)); ax[0, 0].set_title('héllo 数据 $x^2$')
    for e in ('png', 'svg', 'pdf', 'jpg'): fig.savefig('f.' + e)
    from PIL import Image; Image.open('f.png').convert('RGB').resize((50, 50)).save('t.jpg')

def processes():
    import joblib
    for how in ('loky', 'threading'): joblib.Parallel(n_jobs=2, backend=how)(joblib.delayed(square)(i) for i in range(6))
    for how in ('fork', 'spawn', 'forkserver'):
        with mp.get_context(how).Pool(2) as p: assert p.map(square, range(4)) == [0, 1, 4, 9]
    c = mp.get_context('fork'); q = c.Queue(); p = c.Process(target=q.put, args=(1,)); p.start(); q.get(); p.join()
    v, l, e = c.Value('i', 0), c.Lock(), c.Event(); l.acquire(); l.release(); e.set()
    s = shared_memory.SharedMemory(create=True, size=10000); s.close(); s.unlink()
    g = mp.Manager(); d = g.dict(); d['a'] = 1; g.shutdown()
    with cf.ThreadPoolExecutor(4) as x: list(x.map(square, range(9)))
    with cf.ProcessPoolExecutor(2) as x: list(x.map(square, range(9)))
    async def co():
        await asyncio.sleep(0.01); p = await asyncio.create_subprocess_exec('/bin/echo', 'hi', stdout=asyncio.subprocess.PIPE); await p.communicate(); await asyncio.to_thread(square, 3)
    asyncio.run(co())
    assert subprocess.run('echo a | cat; ls /proc/self | head -3; uname -a', shell=True, capture_output=True).returncode == 0
    if os.fork() == 0: os._exit(0)
    os.wait(); os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)

def files():
    with zipfile.ZipFile('z.zip', 'w') as z: z.write('x.csv')
    with zipfile.ZipFile('z.zip') as z: z.extractall('zz')
    for m in (gzip, lzma, bz2):
        with m.open('g', 'wt') as f: f.write('x' * 1000)
    shutil.copytree('zz', 'zz2'); shutil.make_archive('arc', 'gztar', 'zz'); shutil.copy2('x.csv', 'y.csv'); os.rename('y.csv', 'w.csv'); os.symlink('w.csv', 'ln'); os.link('w.csv', 'hl')
    os.chmod('w.csv', 0o600); os.utime('w.csv'); os.truncate('w.csv', 10); os.statvfs('.'); os.listxattr('.'); list(os.walk('.')); os.makedirs('p/q/r'); os.removedirs('p/q/r')
    f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_UN); os.fsync(f.fileno()); os.posix_fallocate(f.fileno(), 0, 4096); f.close()
    with tempfile.NamedTemporaryFile() as t: t.write(b'x')
    shutil.rmtree('zz2')

def small_things():
    signal.signal(signal.SIGALRM, lambda *a: None); signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(0.02); signal.alarm(0)
    a, b = socket.socketpair(); a.send(b'x'); b.recv(1); select.select([b], [], [], 0); select.epoll().close()
    mmap.mmap(-1, 4096).close(); resource.getrusage(resource.RUSAGE_SELF); os.cpu_count(); os.sched_getaffinity(0); os.getloadavg(); os.nice(1); platform.platform()
    uuid.uuid1(); secrets.token_hex(); hashlib.sha256(b'x').hexdigest(); ssl.create_default_context(); os.times(); os.memfd_create('x'); os.getpgid(0)
    threading.Timer(0.01, lambda: None).start()

if __name__ == '__main__':
    os.makedirs('work', exist_ok=True); os.chdir('work')
    for step in (numbers, tables, engines, learning, pictures, processes, files, small_things):
        step(); print(step.__name__, flush=True)
    os.chdir('..'); shutil.rmtree('work')
'''
STEPS = "numbers tables engines learning pictures processes files small_things".split()


@for_each_user
class Workload(BoxTest):
    limits = {"memory_bytes": 2 << 30, "disk_bytes": 256 << 20, "cpu_pct": 400}

    def test_as_a_program(self):
        self.assertEqual(self.box.put("program.py", PROGRAM.encode()).verdict, "ok")
        a = self.box.cell(
            "import subprocess, sys\np = subprocess.run([sys.executable, '-W', 'ignore', 'program.py'], capture_output=True, text=True)\n"
            "print(p.stdout)\nprint(p.stderr[-3000:], file=sys.stderr)",
            timeout_ms=180000,
        )
        self.assertEqual(a.words, STEPS, a.err.decode())

    def test_in_the_head(self):
        code = PROGRAM.split("if __name__")[0] + "os.makedirs('work'); os.chdir('work')\n"
        self.assertIsNone(self.box.cell(code, timeout_ms=60000).error)
        for step in STEPS:
            if step != "processes":  # spawn wants an importable program: above
                a = self.box.cell(f"{step}()", timeout_ms=120000)
                self.assertEqual((a.verdict, a.error), ("ok", None), a)


if __name__ == "__main__":
    unittest.main()
