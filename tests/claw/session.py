"""A session in the lab in real time: nginx in the server's namespace, `claw attach` started
and stopped there, and a phone that runs a script."""

import glob
import json
import os
import random
import struct
import subprocess
import sys
import zlib

IMAGE_BYTES = 2_000_000
HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = "203.0.113.1"
SCENARIO = """seed = {seed}
duration_ms = 600000
[core]
rtt_ms = {rtt}
[cell]
n_prb = 100
queue_bytes = {queue}
[server_tcp]
control = {{ name = "cubic", hystart = true }}
# As for the paper's server (6).
slow_start_after_idle = false
# Android's buffers for LTE (AOSP, TCP_BUFFER_SIZES_LTE): with Linux's own 128 kB the
# receive window grows no faster than slow start, and hides the sender's behaviour.
[phone_tcp.receive]
buffer_bytes = 1048576
max_buffer_bytes = 2097152
"""
NGINX = """daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log; worker_processes 1;
events {{}}
http {{ access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  types {{ text/html html; image/png png; text/css css; text/javascript js; }}
  server {{ listen 80; listen 443 ssl http2; root {dir}/www;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/cert.key; }} }}
"""

# The file `want` requests `claw` and contains how it must end; removing it ends the loader.
ATTACHES = """cd {dir}
while :; do
  until [ -e want ]; do sleep 0.05; done
  end=$(cat want); n=$(ls {name}.output.* 2> /dev/null | wc -l)
  {airmile} --json claw attach --measure {way} > {name}.output.$n 2>&1 & loader=$!
  until grep -q attached {name}.output.$n || ! kill -0 $loader; do sleep 0.05; done
  touch there
  while [ -e want ]; do sleep 0.05; done
  if [ "$end" = kill ]; then kill -9 $loader; else {airmile} -q claw detach; fi
  wait $loader
  rm there
done
"""
PHONE = """set -u
cd {dir}
# The agent sends a new hello after 3 s without an answer.
attach() {{ echo $1 > want; until [ -e there ]; do sleep 0.05; done; sleep 4; }}
detach() {{ rm want; while [ -e there ]; do sleep 0.05; done; }}
{agent}
{script}
kill $(jobs -p) 2> /dev/null
exit 0
"""


def png(size):
    """A noise image of a given size: a browser keeps loading only what it can show."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    side = max(int((size / 3) ** 0.5) - 3, 1)
    rows = b"".join(b"\0" + os.urandom(3 * side) for _ in range(side))
    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    body, end = chunk(b"IDAT", zlib.compress(rows, 0)), chunk(b"IEND", b"")
    # A comment fills the rest.
    rest = max(size - len(head) - len(body) - len(end) - 12, 0)
    return head + chunk(b"tEXt", bytes(rest)) + body + end


def write_site(work):
    """Files for nginx: an image, a page with it, a page of 25 objects (chosen here), and a file."""
    www = os.path.join(work, "www")
    os.mkdir(www)
    put = lambda name, data: open(os.path.join(www, name), "wb").write(data)
    put("image.png", png(IMAGE_BYTES))
    put("image.html", b'<!doctype html><title>page</title><img src="image.png" alt="">')
    sizes = random.Random(2017)
    head, body = "", ""
    # The style sheet and the scripts come first, as in typical pages; then the images.
    put("style.css", b"body{margin:0}/*" + bytes(random.Random(1).choices(b"abcdef", k=60_000)) + b"*/")
    head += '<link rel="stylesheet" href="style.css">'
    for n in range(4):
        put(f"script{n}.js", b"//" + bytes(random.Random(n).choices(b"abcdef", k=90_000)))
        head += f'<script src="script{n}.js"></script>'
    for n in range(20):
        put(f"image{n}.png", png(int(min(sizes.lognormvariate(10.6, 0.9), 400_000))))
        body += f'<img src="image{n}.png" alt="">'
    put("objects.html", f"<!doctype html><title>page</title>{head}{body}".encode())
    with open(os.path.join(www, "endless"), "wb") as file:
        file.truncate(4_000_000_000)
    open(os.path.join(work, "nginx.conf"), "w").write(NGINX.format(dir=work))
    with open(os.open(os.path.join(work, "key"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as key:
        key.write(os.urandom(32).hex() + "\n")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", f"{work}/cert.key", "-out", f"{work}/cert.pem", "-days", "2", "-subj", "/CN=claw.test"],
                   check=True, capture_output=True)


def agent(airmile, work, name, options, rtt):
    """The phone's agent for the whole session, also without a loader, so that the radio stays equally active."""
    way = f"--tcp-option --rtt {rtt + 20}" if options else f"--to {SERVER}:4434 --key-file {work}/key"
    return f"{airmile} --json claw agent --follow $AIRMILE_MODEM_LOG {way} > {name}.reports 2>&1 & sleep 2"


def hold(airmile, work, name, script, way, agent="", rtt=80, seed=5, queue=3_000_000, neighbour=""):
    """Runs the phone's script; returns the output of each loader, and the lab's first line."""
    for left in ("want", "there"):
        if os.path.exists(os.path.join(work, left)):
            os.remove(os.path.join(work, left))
    path = lambda file: os.path.join(work, file)
    open(path("cell.toml"), "w").write(SCENARIO.format(rtt=rtt, seed=seed, queue=queue))
    open(path("attaches.sh"), "w").write(ATTACHES.format(dir=work, airmile=airmile, name=name, way=way))
    open(path("phone.sh"), "w").write(PHONE.format(dir=work, agent=agent, script=script))
    server = f"{neighbour} bash {path('attaches.sh')} & exec nginx -e {work}/error.log -c {work}/nginx.conf"
    # The lab itself may be another build, as it has to run in real time.
    words = [os.environ.get("AIRMILE_LAB", airmile), "lab", "shell", path("cell.toml"), "-o", path(f"{name}.run"), "--force", "--late-limit-ms", "1000",
             "--server", server, "--", "bash", path("phone.sh")]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=lambda: os.nice(-15))
    if done.returncode not in (0, 5):
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-3000:]}{done.stdout[-1000:]}")
    outputs = [open(file).read() for file in sorted(glob.glob(path(f"{name}.output.*")), key=lambda f: int(f.rsplit(".", 1)[1]))]
    late = done.stderr.strip().splitlines()
    return outputs, late[0] if late else ""


def figures(outputs):
    """The final figures of each loader that was asked to end."""
    lines = [line for text in outputs for line in text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{") and "acks" in line]
