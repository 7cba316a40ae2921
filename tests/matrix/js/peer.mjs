// A person with matrix-js-sdk and its Rust crypto, driven by JSON lines: {"id","do",...} in, {"id","ok"|"error"} and {"event",...} out.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import readline from "node:readline";
import crypto from "node:crypto";

const require = createRequire(process.env.PEER_MODULES + "/");
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const out = (o) => process.stdout.write(JSON.stringify(o) + "\n");
for (const level of ["log", "info", "warn", "error", "debug", "trace"]) console[level] = (...a) => process.stderr.write(a.join(" ") + "\n");

const sdk = await load("matrix-js-sdk");
const api = await load("matrix-js-sdk/lib/crypto-api/index.js");
sdk.logger?.setLevel?.("error");
let client, password, user;
const verifiers = new Map();

async function tell(event) {
  const room = event.getRoomId();
  let shield = null;
  if (event.isEncrypted() && !event.isDecryptionFailure())
    shield = (await client.getCrypto().getEncryptionInfoForEvent(event))?.shieldColour ?? null;
  out({
    event: event.getId(), room, type: event.getType(), sender: event.getSender(), content: event.getContent(), wire: event.getWireContent(),
    encrypted: event.isEncrypted(), failed: event.isDecryptionFailure(), why: event.decryptionFailureReason ?? null, shield,
  });
}

const encode = (bytes) => Buffer.from(bytes).toString("base64").replace(/=+$/, "");

function seal(data) {
  const key = crypto.randomBytes(32), iv = Buffer.concat([crypto.randomBytes(8), Buffer.alloc(8)]);
  const cipher = crypto.createCipheriv("aes-256-ctr", key, iv);
  const sealed = Buffer.concat([cipher.update(data), cipher.final()]);
  const k = encode(key).replaceAll("+", "-").replaceAll("/", "_");
  const file = { v: "v2", key: { kty: "oct", alg: "A256CTR", ext: true, key_ops: ["encrypt", "decrypt"], k }, iv: encode(iv),
    hashes: { sha256: encode(crypto.createHash("sha256").update(sealed).digest()) } };
  return { sealed, file };
}

function unseal(data, file) {
  const hash = encode(crypto.createHash("sha256").update(data).digest());
  if (hash !== file.hashes.sha256.replace(/=+$/, "")) throw new Error("wrong hash");
  const key = Buffer.from(file.key.k.replaceAll("-", "+").replaceAll("_", "/"), "base64");
  const cipher = crypto.createDecipheriv("aes-256-ctr", key, Buffer.from(file.iv, "base64"));
  return Buffer.concat([cipher.update(data), cipher.final()]);
}

const fetchMedia = async (mxc) => {
  const url = client.mxcUrlToHttp(mxc, undefined, undefined, undefined, false, true, true);
  const got = await fetch(url, { headers: { Authorization: `Bearer ${client.getAccessToken()}` } });
  if (!got.ok) throw new Error(`media ${got.status}`);
  return Buffer.from(await got.arrayBuffer());
};

const signIn = async (make) => {
  try { return await make(null); } catch (e) {
    return make({ type: "m.login.password", identifier: { type: "m.id.user", user }, password, session: e.data.session });
  }
};

const does = {
  async login(o) {
    ({ user, password } = o);
    const first = sdk.createClient({ baseUrl: o.url });
    const got = await first.login("m.login.password", { identifier: { type: "m.id.user", user }, password });
    client = sdk.createClient({ baseUrl: o.url, accessToken: got.access_token, userId: got.user_id, deviceId: got.device_id,
      verificationMethods: ["m.sas.v1"] });
    await client.initRustCrypto({ useIndexedDB: false });
    client.on(sdk.RoomEvent.Timeline, (event, room, old) => { if (!old && !event.isBeingDecrypted() && !event.shouldAttemptDecryption()) tell(event); });
    client.on(sdk.MatrixEventEvent.Decrypted, (event) => tell(event));
    client.on(api.CryptoEvent.VerificationRequestReceived, (r) => out({ verification: "request", from: r.otherUserId }));
    await client.startClient({ initialSyncLimit: 20 });
    await new Promise((done) => client.on(sdk.ClientEvent.Sync, (state) => state === "PREPARED" && done()));
    return { user: got.user_id, device: got.device_id };
  },
  async identity() { await client.getCrypto().bootstrapCrossSigning({ authUploadDeviceSigningKeys: signIn }); },
  async strict(o) {
    client.getCrypto().setDeviceIsolationMode(new api.OnlySignedDevicesIsolationMode());
    if (o.room) await client.getCrypto().forceDiscardSession(o.room);
  },
  async room(o) {
    const options = { preset: "private_chat", invite: o.invite, is_direct: !!o.direct,
      initial_state: o.plain ? [] : [{ type: "m.room.encryption", state_key: "", content: { algorithm: "m.megolm.v1.aes-sha2", ...(o.encryption ?? {}) } }] };
    return (await client.createRoom(options)).room_id;
  },
  async state(o) { await client.sendStateEvent(o.room, o.type, o.content, o.key ?? ""); },
  async send(o) { return (await client.sendEvent(o.room, o.type ?? "m.room.message", o.content)).event_id; },
  async file(o) {
    const data = Buffer.from(o.data, "base64"), { sealed, file } = seal(data);
    const up = await client.uploadContent(o.broken ? Buffer.concat([sealed.subarray(1), Buffer.from("x")]) : sealed, { type: "application/octet-stream", includeFilename: false });
    file.url = up.content_uri;
    const content = { msgtype: "m.file", body: o.caption ?? o.name, filename: o.name, file, info: { size: data.length, mimetype: "text/csv" }, ...(o.more ?? {}) };
    return (await client.sendEvent(o.room, "m.room.message", content)).event_id;
  },
  async download(o) {
    const data = await fetchMedia(o.file ? o.file.url : o.mxc);
    return (o.file ? unseal(data, o.file) : data).toString("base64");
  },
  async redact(o) { await client.redactEvent(o.room, o.event); },
  async leave(o) { await client.leave(o.room); },
  async discard(o) { await client.getCrypto().forceDiscardSession(o.room); },
  async trust(o) { const s = await client.getCrypto().getDeviceVerificationStatus(o.user, o.device); return s && { signed: s.signedByOwner, cross: s.crossSigningVerified }; },
  async verified(o) { // the signature is uploaded, and comes back with a sync
    for (let i = 0; i < 150; i++) {
      if ((await client.getCrypto().getUserVerificationStatus(o.user)).isCrossSigningVerified()) return true;
      await new Promise((next) => setTimeout(next, 200));
    }
    return false;
  },
  async verify(o) {
    const request = await client.getCrypto().requestVerificationDM(o.user, o.room);
    const { VerificationPhase: P } = api;
    await new Promise((done, fail) => {
      const look = () => { if (request.phase === P.Ready) done(); if (request.phase === P.Cancelled) fail(new Error("cancelled " + request.cancellationCode)); };
      request.on("change", look); look();
    });
    const verifier = await request.startVerification("m.sas.v1");
    const shown = new Promise((done) => verifier.on("show_sas", done));
    verifier.verify().then(() => out({ verification: "done" }), (e) => out({ verification: "failed", why: String(e) }));
    const sas = await shown;
    verifiers.set(o.user, sas);
    return sas.sas;
  },
  async confirm(o) { const sas = verifiers.get(o.user); if (o.match) await sas.confirm(); else sas.mismatch(); },
  async stop() { client.stopClient(); setTimeout(() => process.exit(0), 50); },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const o = JSON.parse(line);
  does[o.do](o).then((ok) => out({ id: o.id, ok: ok ?? null }), (e) => out({ id: o.id, error: String(e?.stack ?? e) }));
}
process.exit(0);
