# The network, and everything else that has an address (section 4, 51-56, 36).
# %% 51 socket families -> EPERM
for family in range(2, 48):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        word(socket.socket, family, kind)
# %% 51b families by the high half -> EPERM
for family in (2, 10, 16, 17, 38, 40, 44):
    for high in (1 << 32, 1 << 40, 1 << 63):
        call("socket", family | high, 2, 0)
        call("socketpair", family | high, 1, 0, bytes(8))
# %% 51c the high half does not hide a local one -> open
for _ in range(2):
    os.close(call("socket", 1 | 1 << 32, 1, 0))
# %% 51d the kernel's cryptography -> EPERM
word(socket.socket, 38, socket.SOCK_SEQPACKET, 0)
call("socket", 38, 5 | 0o2000000, 0)
# %% 51e the hypervisor -> EPERM ENOENT
word(socket.socket, 40, socket.SOCK_STREAM)
word(os.open, "/dev/vsock", os.O_RDWR)
# %% 51f netlink of every kind -> EPERM
for protocol in range(23):
    word(socket.socket, 16, socket.SOCK_RAW, protocol)
# %% 51g pairs of other families -> EPERM
for family in (0, 2, 10, 16, 30, 38, 40):
    call("socketpair", family, 1, 0, bytes(8))
# %% 52 names -> gaierror
for h in ("example.com", "metadata.google.internal", "sandbox", "1.2.3.4.in-addr.arpa", "a.root-servers.net", "xn--nxasmq6b"):
    word(socket.getaddrinfo, h, 80)
    word(socket.gethostbyname, h)
# %% 52b names fail at once -> fast
began = time.monotonic()
for h in ("example.com", "www.debian.org", "_dns.resolver.arpa"):
    try: socket.getaddrinfo(h, 443)
    except OSError: pass
print("fast" if time.monotonic() - began < 2 else "slow")
# %% 53 metadata services and the host's loopback -> EPERM
for a in (("169.254.169.254", 80), ("169.254.170.2", 80), ("100.100.100.200", 80), ("127.0.0.1", 22), ("127.0.0.1", 5432), ("10.0.0.1", 80), ("192.168.1.1", 53)):
    word(socket.create_connection, a, 1)
for a in (("fd00:ec2::254", 80), ("::1", 22)):
    word(lambda: socket.socket(socket.AF_INET6).connect(a))
# %% 53b by the tools that people use -> URLError OSError EPERM gaierror absent
import urllib.request, ftplib, smtplib, http.client, asyncio
try: urllib.request.urlopen("http://169.254.169.254/latest/meta-data/", timeout=2)
except Exception as e: print(type(e).__name__)
try: http.client.HTTPConnection("127.0.0.1", 80, timeout=2).request("GET", "/")
except OSError as e: print(errno.errorcode.get(e.errno, "OSError"))
try: import pandas; pandas.read_csv("https://example.com/a.csv")
except Exception as e: print(type(e).__name__)
async def dial():
    try: await asyncio.open_connection("1.1.1.1", 53)
    except OSError as e: print(errno.errorcode.get(e.errno, "OSError"))
asyncio.new_event_loop().run_until_complete(dial())
print(*[t for t in ("curl", "wget", "nc", "ssh") if shutil.which(t)], "absent")
got = subprocess.run(["bash", "-c", "exec 9<>/dev/tcp/127.0.0.1/22"], capture_output=True)
print("absent" if got.returncode else "open")
# %% 54 abstract sockets of the host -> EPERM ECONNREFUSED
for name in ("\0sandbook-test-abstract", "\0/tmp/.X11-unix/X0", "\0systemd", "\0/org/kernel/linux/storage/multipathd", "\0/run/dbus/system_bus_socket", "\0" + "0" * 5):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        word(socket.socket(socket.AF_UNIX, kind).connect, name)
# %% 54b named sockets of the host -> ENOENT
for name in ("/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/notify", "/run/dbus/system_bus_socket", "/run/udev/control", "/tmp/.X11-unix/X0", "/run/user/0/bus"):
    word(socket.socket(socket.AF_UNIX).connect, name)
# %% 54c the tables of sockets are empty -> 0
for table in ("tcp", "tcp6", "udp", "udp6", "raw", "netlink", "packet", "route"):
    try: lines = open("/proc/self/net/" + table).read().splitlines()
    except OSError: continue
    print(max(len(lines) - 1, 0) if table != "netlink" else 0)
print(sum("@" in line or "/" in line.split()[-1] for line in open("/proc/self/net/unix").read().splitlines()[1:] if len(line.split()) > 7))
# %% 54d the only interface is a dead loopback -> lo
print(*[line.split(":")[0].strip() for line in open("/proc/self/net/dev").read().splitlines()[2:]])
# %% 55 options of sockets that need rights -> EPERM EOPNOTSUPP EINVAL ENOPROTOOPT EBADF ENODEV
a, b = socket.socketpair()
for level, option in ((1, 32), (1, 33), (1, 36), (1, 25), (1, 50), (1, 52)):  # SNDBUFFORCE RCVBUFFORCE MARK BINDTODEVICE ATTACH_BPF
    word(a.setsockopt, level, option, struct.pack("i", -1))
# %% 55b who is at the other end can't be forged -> EPERM ESRCH EINVAL
a, b = socket.socketpair()
for who in ((1, 0, 0), (1, 1000, 1000), (os.getpid(), 0, 0), (os.getppid() or 1, 1000, 1000)):
    word(a.sendmsg, [b"x"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("iii", *who))])
# %% 55c the other end of its channel is nobody it could name -> 0
s = socket.socket(fileno=os.dup(3))
print(struct.unpack("iii", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
s.detach()
# %% 55d no handle of the keeper by its socket -> EPERM
# SO_PEERPIDFD of the channel would be a pidfd of the keeper, which made the pair; SO_PASSPIDFD brings one with what it sends.
s = socket.socket(fileno=os.dup(3))
for level in (socket.SOL_SOCKET, socket.SOL_SOCKET | 1 << 32):
    call("getsockopt", 3, level, 77, bytes(4), struct.pack("i", 4))
    call("getsockopt", 3, level, 77 | 1 << 32, bytes(4), struct.pack("i", 4))
    call("setsockopt", 3, level, 76 | 1 << 32, struct.pack("i", 1), 4)
word(s.getsockopt, socket.SOL_SOCKET, 77, 4)
word(s.setsockopt, socket.SOL_SOCKET, 76, 1)
s.detach()
# %% 55e a handle of the keeper is of no use -> EPERM ENOSYS ECHILD ENOPROTOOPT EINVAL 0 -1 ENOTTY ESRCH
s = socket.socket(fileno=os.dup(3))
try:
    handle = struct.unpack("i", s.getsockopt(socket.SOL_SOCKET, 77, 4))[0]
    call("pidfd_send_signal", handle, 0, 0, 0)
    call("pidfd_getfd", handle, 3, 0)
    call("setns", handle, 0x20000)
    call("process_madvise", handle, struct.pack("QQ", 0, 4096), 1, 21, 0)
    word(os.waitid, os.P_PIDFD, handle, os.WEXITED)
    call("ioctl", handle, 0xFF09, 0)  # its user namespace
    call("ioctl", handle, 0xC040FF0B, bytes(64))  # what it is
    print(*[line.split()[1] for line in open(f"/proc/self/fdinfo/{handle}") if line.startswith("Pid:")])
    os.close(handle)
except OSError as e: print(errno.errorcode[e.errno])
s.detach()
# %% 56 DNS by hand -> EPERM
call("socket", 2, 2, 17)
call("socket", 10, 2, 17)
call("socket", 16, 3, 0)
call("socket", 2, 3, 255)
call("socket", 17, 3, 0x300)
# %% 36b names in the kernel's own spaces are not shared -> ENOENT EPERM ENOSYS
word(os.stat, "/dev/mqueue")
call("mq_open", b"/sandbook", 0, 0, 0)
call("shmget", 0x53414E44, 1, 0)
