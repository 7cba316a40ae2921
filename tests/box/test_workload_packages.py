"""Each package of the image under all locks: its files, threads and clocks, not only its import. In the head, in a
child of it, and in a child of that child: what a copy of a session would be asked to do."""
import json
import unittest

from keeper import ROOT, BoxTest, for_each_user

# One function for one package; a module of its own, so that worker processes can import it.
USES = r'''
import io, os, tempfile, threading, time
import numpy as np, pandas as pd

def frame(n=400):
    return pd.DataFrame({"a": range(n), "b": np.random.default_rng(0).normal(size=n), "c": ["x", "y"] * (n // 2), "t": pd.date_range("2024-02-28", periods=n, freq="h")})

def numpy():
    a = np.random.default_rng(1).normal(size=(400, 400))
    assert np.allclose(a @ np.linalg.inv(a), np.eye(400), atol=1e-6)
    np.savez_compressed("a.npz", a=a); assert np.load("a.npz")["a"].shape == (400, 400)
    np.savetxt("a.txt", a[:5]); np.loadtxt("a.txt"); np.memmap("a.mm", dtype="f8", mode="w+", shape=(10, 10)).flush()
    assert np.datetime64("2024-02-29") - np.datetime64("2024-02-28") == np.timedelta64(1, "D")

def pandas():
    d = frame(); d.to_csv("d.csv", index=False); d.to_parquet("d.parquet"); d.to_feather("d.feather"); d.to_pickle("d.pkl.gz"); d.to_json("d.json"); d.to_html("d.html")
    assert len(pd.read_csv("d.csv", engine="pyarrow")) == len(pd.read_parquet("d.parquet")) == len(pd.read_feather("d.feather")) == len(pd.read_pickle("d.pkl.gz"))
    d.groupby("c").b.agg(["mean", "std"]); d.set_index("t").b.rolling("7h").mean(); d.t.dt.tz_localize("UTC").dt.tz_convert("America/New_York"); d.t.dt.tz_localize("US/Eastern", nonexistent="shift_forward", ambiguous=True)
    d.c.str.upper().str.contains("X"); d.eval("a + b"); d.query("a > 3"); pd.read_html(io.StringIO("<table><tr><td>1</td></tr></table>"))
    pd.read_fwf(io.StringIO("a  b\n1  2\n")); pd.Timestamp.now("Asia/Tokyo"); d.style.format(precision=2).to_html(); d.head().to_markdown()

def polars():
    import polars as pl
    d = pl.from_pandas(frame()); d.write_parquet("p.parquet"); d.write_csv("p.csv"); d.write_ipc("p.ipc"); d.write_ndjson("p.nd")
    assert pl.scan_parquet("p.parquet").group_by("c").agg(pl.col("b").mean()).collect().height == 2
    pl.read_csv("p.csv", try_parse_dates=True); pl.read_ipc("p.ipc"); pl.read_ndjson("p.nd"); d.lazy().sort("b").collect(engine="streaming")
    d.with_columns(pl.col("t").dt.replace_time_zone("Europe/Paris")); pl.SQLContext(t=d).execute("select c, count(*) from t group by c").collect()

def pyarrow():
    import pyarrow as pa, pyarrow.compute as pc, pyarrow.csv, pyarrow.dataset as ds, pyarrow.feather, pyarrow.json, pyarrow.parquet as pq
    t = pa.Table.from_pandas(frame()); pq.write_table(t, "w.parquet", compression="zstd"); pa.feather.write_feather(t, "w.feather"); pa.csv.write_csv(t, "w.csv")
    ds.write_dataset(t, "w", format="parquet", partitioning=["c"]); assert ds.dataset("w", partitioning=["c"]).count_rows() == 400
    pa.set_cpu_count(2); pc.sum(t["b"]); t.group_by("c").aggregate([("b", "mean")]); pa.memory_map("w.csv").read(10); pc.strftime(t["t"]); pa.csv.read_csv("w.csv")

def duckdb():
    import duckdb
    d = frame(); c = duckdb.connect("d.duckdb"); c.execute("set threads = 2"); c.execute("create table t as select * from d"); c.execute("copy t to 'k.parquet'"); c.execute("copy t to 'k.csv'")
    assert c.sql("select count(*) from 'k.parquet' join t using (a)").fetchall() == [(400,)]; c.sql("select c, median(b) over (partition by c) from t").df(); c.sql("select date_trunc('day', t) from t").arrow(); c.close()
    assert duckdb.sql("select count(*) from range(1000000) r(x) where x % 3 = 0").fetchall() == [(333334,)]

def scipy():
    import scipy.cluster, scipy.fft, scipy.integrate, scipy.interpolate, scipy.io, scipy.linalg, scipy.ndimage, scipy.optimize, scipy.signal, scipy.sparse.linalg, scipy.spatial, scipy.special, scipy.stats
    r = np.random.default_rng(0); x = r.normal(size=(100, 3))
    scipy.stats.ttest_ind(x[:, 0], x[:, 1]); scipy.optimize.minimize(lambda v: ((v - 1) ** 2).sum(), np.zeros(5)); scipy.fft.fft2(r.normal(size=(256, 256)), workers=2)
    scipy.spatial.cKDTree(x).query(x, k=3, workers=2); scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0]); scipy.sparse.linalg.spsolve(scipy.sparse.eye(50, format="csc"), np.ones(50))
    scipy.signal.butter(4, 0.2); scipy.interpolate.CubicSpline(range(9), range(9)); scipy.io.savemat("m.mat", {"x": x}); scipy.io.loadmat("m.mat"); scipy.ndimage.gaussian_filter(x, 1); scipy.special.gamma(5); scipy.linalg.svd(x)

def sklearn():
    from sklearn.cluster import KMeans, DBSCAN
    from sklearn.datasets import make_classification
    from sklearn.decomposition import PCA
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.linear_model import LogisticRegression
    X, y = make_classification(200, 8, random_state=0)
    RandomForestClassifier(20, n_jobs=2).fit(X, y); HistGradientBoostingClassifier(max_iter=5).fit(X, y); KMeans(3, n_init=2).fit(X); DBSCAN().fit(X); PCA(2).fit_transform(X)
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2, n_jobs=1).fit(X, y); assert KNeighborsClassifier(n_jobs=2).fit(X, y).score(X, y) > 0.5

def loky():
    import joblib
    from sklearn.linear_model import LogisticRegression
    from sklearn.datasets import make_classification
    from sklearn.model_selection import cross_val_score
    X, y = make_classification(100, 5, random_state=0)
    with joblib.parallel_backend("loky", n_jobs=2): cross_val_score(LogisticRegression(), X, y, cv=2)
    assert joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]
    joblib.Memory("cache", verbose=0).cache(np.sum)(X); joblib.dump(X, "x.joblib", compress=3); joblib.load("x.joblib")
    from joblib.externals.loky import get_reusable_executor
    get_reusable_executor().shutdown(wait=True)

def statsmodels():
    import statsmodels.api as sm, statsmodels.formula.api as smf, statsmodels.tsa.api as tsa
    d = frame(); smf.ols("b ~ a + C(c)", d).fit().summary().as_text(); sm.Logit((d.b > 0).astype(int), sm.add_constant(d[["a"]])).fit(disp=0); tsa.seasonal_decompose(d.b, period=24); tsa.SimpleExpSmoothing(d.b, initialization_method='estimated').fit()

def sympy():
    import sympy as sp
    x = sp.symbols("x"); assert sp.integrate(sp.sin(x) ** 2, (x, 0, sp.pi)) == sp.pi / 2; sp.solve(x ** 3 - 2 * x + 1, x); sp.lambdify(x, sp.exp(x), "numpy")(np.ones(3)); sp.latex(sp.Matrix([[x, 1], [1, x]]).inv()); sp.N(sp.pi, 200)

def networkx():
    import networkx as nx
    g = nx.erdos_renyi_graph(60, 0.1, seed=1); nx.pagerank(g); nx.shortest_path_length(g); nx.write_graphml(g, "g.graphml"); nx.read_graphml("g.graphml"); nx.spring_layout(g, seed=1)

def matplotlib():
    import matplotlib.pyplot as plt, matplotlib.animation as an, matplotlib.dates as md
    f, ax = plt.subplots(2, 2, figsize=(5, 4)); ax[0, 0].plot(frame().t[:50], range(50)); ax[0, 0].xaxis.set_major_formatter(md.AutoDateFormatter(md.AutoDateLocator())); ax[0, 1].hist2d(*np.random.rand(2, 100)); ax[1, 0].contourf(np.random.rand(9, 9)); ax[1, 1].set_title("标题 é $\\frac{a}{b}$")
    for e in ("png", "svg", "pdf", "jpg", "webp"): f.savefig("f." + e)
    an.FuncAnimation(f, lambda i: [], frames=3, cache_frame_data=False).save("f.gif", writer="pillow"); plt.close("all")

def seaborn():
    import seaborn as sns, matplotlib.pyplot as plt
    d = frame(); sns.kdeplot(d.b); sns.heatmap(d[["a", "b"]].corr()); sns.regplot(x="a", y="b", data=d, n_boot=20); sns.catplot(data=d, x="c", y="b", kind="box"); plt.savefig("s.png"); plt.close("all")

def plotly():
    import plotly.express as px, plotly.graph_objects as go
    px.scatter(frame(), x="a", y="b", color="c").write_html("p.html", include_plotlyjs=False); go.Figure(go.Bar(x=[1], y=[2])).to_json()

def pillow():
    from PIL import Image, ImageDraw, ImageFilter, ImageFont
    im = Image.new("RGB", (200, 100), "white"); ImageDraw.Draw(im).text((5, 5), "héllo"); im.filter(ImageFilter.GaussianBlur(2))
    for e in ("png", "jpg", "gif", "webp", "tiff", "bmp"): im.save("i." + e); Image.open("i." + e).load()
    im.rotate(30).resize((50, 50)); ImageFont.truetype("DejaVuSans.ttf", 12) if os.path.exists("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf") else None

def sheets():
    import openpyxl, xlsxwriter, python_calamine, xlrd
    from openpyxl.chart import BarChart, Reference
    d = frame(); d.to_excel("o.xlsx", index=False); b = openpyxl.load_workbook("o.xlsx"); s = b.active; s["H1"] = "=SUM(A2:A9)"; c = BarChart(); c.add_data(Reference(s, min_col=1, min_row=1, max_row=9)); s.add_chart(c, "J2"); b.save("o2.xlsx")
    with pd.ExcelWriter("x.xlsx", engine="xlsxwriter") as w: d.to_excel(w, sheet_name="S"); w.sheets["S"].conditional_format("B2:B9", {"type": "3_color_scale"})
    assert len(pd.read_excel("x.xlsx", engine="calamine")) == 400; d.head().to_excel("o.ods", engine="odf"); pd.read_excel("o.ods", engine="odf"); python_calamine.CalamineWorkbook.from_path("x.xlsx").sheet_names

def documents():
    import docx, pypdf, bs4, lxml.etree, lxml.html, html5lib, jinja2, tabulate, charset_normalizer, defusedxml.ElementTree
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen import canvas
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table
    from reportlab.lib.styles import getSampleStyleSheet
    w = docx.Document(); w.add_heading("T"); w.add_paragraph("é"); w.save("w.docx"); docx.Document("w.docx").paragraphs
    c = canvas.Canvas("r.pdf", pagesize=A4); c.drawString(50, 50, "hi"); c.save(); SimpleDocTemplate("r2.pdf").build([Paragraph("x", getSampleStyleSheet()["Normal"]), Table([[1, 2]])])
    assert "hi" in pypdf.PdfReader("r.pdf").pages[0].extract_text(); p = pypdf.PdfWriter(); p.append("r.pdf"); p.append("r2.pdf"); p.encrypt("k"); p.write("m.pdf")
    bs4.BeautifulSoup("<p>a<p>b", "html5lib").find_all("p"); bs4.BeautifulSoup("<p>", "lxml"); lxml.etree.fromstring("<a><b/></a>").xpath("//b"); jinja2.Template("{{ x }}").render(x=1); tabulate.tabulate([[1]]); charset_normalizer.from_bytes("été".encode("latin-1") * 9).best()

def notebooks():
    import cloudpickle, nbformat, tqdm
    n = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]); nbformat.write(n, "n.ipynb"); nbformat.validate(nbformat.read("n.ipynb", 4)); assert cloudpickle.loads(cloudpickle.dumps(lambda x: x + 1))(1) == 2
    for _ in tqdm.tqdm(range(50), file=io.StringIO()): time.sleep(0.0001)

def sqlite():
    import sqlite3
    c = sqlite3.connect("w.db", check_same_thread=False); c.execute("pragma journal_mode=wal"); c.execute("create table if not exists t (x)")
    def write(): w = sqlite3.connect("w.db", timeout=10); w.executemany("insert into t values (?)", [(i,) for i in range(100)]); w.commit(); w.close()
    ts = [threading.Thread(target=write) for _ in range(4)]; [t.start() for t in ts]; [t.join() for t in ts]
    assert c.execute("select count(*) from t").fetchone()[0] >= 400; c.execute("select json_extract('{\"a\": 1}', '$.a')"); c.execute("create virtual table if not exists f using fts5(x)"); c.backup(sqlite3.connect("b.db")); c.execute("vacuum into '" + tempfile.mktemp(dir=".") + "'"); c.close()

def asynchronous():
    import asyncio, concurrent.futures as cf
    async def co():
        async with asyncio.TaskGroup() as g: [g.create_task(asyncio.sleep(0.01)) for _ in range(20)]
        p = await asyncio.create_subprocess_shell("cat", stdin=-1, stdout=-1); out, _ = await p.communicate(b"x"); assert out == b"x"
        s = await asyncio.start_unix_server(lambda r, w: w.close(), "s.sock"); r, w = await asyncio.open_unix_connection("s.sock"); await r.read(); w.close(); s.close(); os.path.exists("s.sock") and os.unlink("s.sock")
        async with asyncio.timeout(5): await asyncio.to_thread(time.sleep, 0.01)
    loop = asyncio.new_event_loop(); loop.run_until_complete(co()); loop.close()
    with cf.ThreadPoolExecutor(4) as x: assert sum(x.map(abs, range(-50, 0))) == 1275

def processes():
    import multiprocessing as mp, signal, subprocess
    with mp.get_context("fork").Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]
    r, w = mp.Pipe(); q = mp.get_context("fork").Process(target=w.send, args=(1,)); q.start(); assert r.recv() == 1; q.join()
    p = subprocess.Popen(["sleep", "100"], start_new_session=True); p.send_signal(signal.SIGTERM); assert p.wait() == -15
    assert subprocess.run("seq 1000 | sort -rn | head -1 | tr -d '\\n'", shell=True, capture_output=True).stdout == b"1000"; assert subprocess.run(["timeout", "0.1", "sleep", "5"]).returncode == 124
    from multiprocessing import shared_memory; s = shared_memory.SharedMemory(create=True, size=1 << 20); s.buf[0] = 1; s.close(); s.unlink()

def times():
    import calendar, datetime as dt, locale, sched, zoneinfo
    for z in ("Europe/Berlin", "US/Eastern", "Asia/Kolkata", "UTC"): dt.datetime.now(zoneinfo.ZoneInfo(z))
    assert dt.datetime(2024, 3, 31, 3, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")).utcoffset().seconds == 7200; time.strftime("%c"); time.tzset(); time.get_clock_info("monotonic"); time.clock_gettime(time.CLOCK_BOOTTIME); time.thread_time(); locale.setlocale(locale.LC_ALL, "C.UTF-8"); calendar.month(2024, 2)
    s = sched.scheduler(); s.enter(0.01, 1, lambda: None); s.run(); e = threading.Event(); threading.Timer(0.01, e.set).start(); assert e.wait(5)

PACKAGES = [numpy, pandas, pyarrow, duckdb, scipy, sklearn, loky, statsmodels, sympy, networkx, matplotlib, seaborn, plotly, pillow, sheets, documents, notebooks, sqlite, asynchronous, processes, times, polars]
NAMES = [f.__name__ for f in PACKAGES]

def use(name):
    """In a folder of its own."""
    import shutil, warnings
    back, here = os.getcwd(), tempfile.mkdtemp(dir="/mnt/data", prefix=".use-")
    os.chdir(here)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore"); globals()[name]()
    finally:
        os.chdir(back); shutil.rmtree(here, ignore_errors=True)

def outcome(f, seconds=20):
    """Of a child: "right", "hangs", or how it ended."""
    import signal, traceback
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        try: word = f() or "right"
        except BaseException: word = traceback.format_exc()[-600:]
        os.write(w, word.encode()[:3000]); os._exit(0)
    os.close(w)
    import select
    ready = select.select([r], [], [], seconds)[0]
    word = os.read(r, 4000).decode() if ready else "hangs"
    os.close(r)
    for kill in (os.killpg, os.kill):
        try: kill(pid, 9)
        except OSError: pass
    os.waitpid(pid, 0)
    return word or "ended"

def generations(name):
    """In a child, and then, when the child has used it, in a child of that child."""
    def first():
        use(name)
        return "right/" + outcome(lambda: use(name), 5)
    return outcome(first)
'''
# What a fork does not survive, once it was used: the pool of threads is gone.
KNOWN = {"polars": "right/hangs"}
NAMES = "numpy pandas pyarrow duckdb scipy sklearn loky statsmodels sympy networkx matplotlib seaborn plotly pillow sheets documents notebooks sqlite asynchronous processes times polars".split()
# What is imported under another name than that of its package.
COVERED_BY = {"scikit-learn": "sklearn", "python-calamine": "python_calamine", "python-docx": "docx", "beautifulsoup4": "bs4", "charset-normalizer": "charset_normalizer", "odfpy": "odf",
              "ipython": "IPython", "pillow": "PIL"}


class Loaded(BoxTest):
    limits = {"memory_bytes": 2 << 30, "disk_bytes": 256 << 20, "cpu_pct": 400}

    def setUp(self):
        super().setUp()
        self.assertEqual(self.box.put("uses.py", USES.encode()).verdict, "ok")
        a = self.box.cell("import os, sys\nsys.path.insert(0, '/mnt/data')\nimport uses\nuses.NAMES", timeout_ms=60000)
        self.assertEqual((a.error, a.result and a.result.replace("\n", "")), (None, repr(NAMES)), a)


@for_each_user
class Packages(Loaded):
    def test_each_in_the_head(self):
        for name in NAMES:
            with self.subTest(name):
                a = self.box.cell(f"uses.use({name!r})", timeout_ms=120000)
                self.assertEqual((a.verdict, a.state, a.error), ("ok", "kept", None), a)

    def test_threads_that_are_left_running_go_on(self):
        self.box.cell("import threading, time\nn = 0\ndef count():\n    global n\n    while True: n += 1; time.sleep(0.005)\nthreading.Thread(target=count, daemon=True).start()")
        first = int(self.box.cell("n").result)
        self.box.cell("time.sleep(0.2)")
        self.assertGreater(int(self.box.cell("n").result), first)

    def test_pools_and_children_live_from_cell_to_cell(self):
        self.box.cell("import concurrent.futures as cf, multiprocessing as mp, subprocess\npool = cf.ThreadPoolExecutor(2); workers = mp.get_context('fork').Pool(2); p = subprocess.Popen(['cat'], stdin=-1, stdout=-1)")
        a = self.box.cell("print(list(pool.map(abs, [-1])), workers.map(abs, [-2]), p.communicate(b'x')[0], p.wait())\nworkers.terminate(); workers.join()")
        self.assertEqual((a.verdict, a.error, a.out), ("ok", None, b"[1] [2] b'x' 0\n"), a)

    def test_a_transaction_lives_from_cell_to_cell(self):
        self.box.cell("import sqlite3\nc = sqlite3.connect('t.db'); c.execute('create table t (x)'); c.execute('insert into t values (1)')")
        self.assertEqual(self.box.cell("c.commit(); sqlite3.connect('t.db').execute('select x from t').fetchall()").result, "[(1,)]")

    def test_start_methods_with_functions_of_a_cell(self):
        self.box.cell("import multiprocessing as mp\ndef square(x): return x * x")
        for how in ("fork", "spawn", "forkserver"):
            a = self.box.cell(f"with mp.get_context({how!r}).Pool(2) as p: print(p.map(square, range(4)))", timeout_ms=60000)
            self.assertEqual((a.verdict, a.error, a.out), ("ok", None, b"[0, 1, 4, 9]\n"), a)


class Generations(Loaded):
    def test_each_in_a_child_and_in_its_child(self):
        code = "import json\nprint(json.dumps({n: uses.generations(n) for n in uses.NAMES}))"
        a = self.box.cell(code, timeout_ms=300000)
        self.assertEqual(a.verdict, "ok", a)
        got = json.loads(a.out.split(b"\n")[-2])
        self.assertEqual({n: w for n, w in got.items() if w != KNOWN.get(n, "right/right")}, {})


del Loaded


class Covered(unittest.TestCase):
    def test_every_package_of_the_image_is_used(self):
        lines = (ROOT / "sandbox/image/requirements.in").read_text().splitlines()
        wanted = [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
        text = USES.replace("sns", "seaborn")
        indirect = {"odfpy": 'engine="odf"', "ipython": None, "jinja2": "jinja2", "pillow": "PIL"}  # IPython is what runs all of this
        missing = [p for p in wanted if indirect.get(p, COVERED_BY.get(p, p)) is not None and indirect.get(p, COVERED_BY.get(p, p)) not in text]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
