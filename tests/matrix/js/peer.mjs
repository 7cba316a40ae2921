// People with matrix-js-sdk and its Rust crypto, driven by JSON lines: {"id","as","do",...} in, {"id","ok"|"error"} and {"as",...} out.
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

// ---- attachments: written here a second time, from the rules ----

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

// ---- a person at a device ----

class Person {
  constructor(name) { this.name = name; this.requests = new Map(); this.secrets = new Map(); }

  out(o) { out({ as: this.name, ...o }); }
  get crypto() { return this.client.getCrypto(); }

  async tell(event) {
    let shield = null;
    if (event.isEncrypted() && !event.isDecryptionFailure()) shield = (await this.crypto.getEncryptionInfoForEvent(event))?.shieldColour ?? null;
    this.out({
      event: event.getId(), room: event.getRoomId(), type: event.getType(), sender: event.getSender(), content: event.getContent(),
      wire: event.getWireContent(), encrypted: event.isEncrypted(), failed: event.isDecryptionFailure(),
      why: event.decryptionFailureReason ?? null, shield,
    });
  }

  async media(mxc) {
    const url = this.client.mxcUrlToHttp(mxc, undefined, undefined, undefined, false, true, true);
    const got = await fetch(url, { headers: { Authorization: `Bearer ${this.client.getAccessToken()}` } });
    if (!got.ok) throw new Error(`media ${got.status}`);
    return Buffer.from(await got.arrayBuffer());
  }

  signIn = async (make) => {
    try { return await make(null); } catch (e) {
      if (!e.data?.session) throw e;
      return make({ type: "m.login.password", identifier: { type: "m.id.user", user: this.user }, password: this.password, session: e.data.session });
    }
  };

  // ---- coming and going ----

  async login(o) {
    ({ user: this.user, password: this.password } = o);
    const first = sdk.createClient({ baseUrl: o.url });
    const got = await first.login("m.login.password", { identifier: { type: "m.id.user", user: this.user }, password: this.password });
    const client = this.client = sdk.createClient({ baseUrl: o.url, accessToken: got.access_token, userId: got.user_id, deviceId: got.device_id,
      verificationMethods: ["m.sas.v1"], fetchFn: (url, options) => this.fetch(url, options),
      cryptoCallbacks: {
        getSecretStorageKey: async ({ keys }) => { const id = Object.keys(keys).find((k) => this.secrets.has(k)); return id ? [id, this.secrets.get(id)] : null; },
        cacheSecretStorageKey: (id, info, key) => this.secrets.set(id, key),
      } });
    await client.initRustCrypto({ useIndexedDB: false });
    client.on(sdk.RoomEvent.Timeline, (event, room, old) => { if (!old && !event.isBeingDecrypted() && !event.shouldAttemptDecryption()) this.tell(event); });
    client.on(sdk.MatrixEventEvent.Decrypted, (event) => this.tell(event));
    client.on(api.CryptoEvent.VerificationRequestReceived, (r) => this.out({ verification: "request", from: r.otherUserId }));
    client.on(sdk.ClientEvent.ToDeviceEvent, (event) => this.out({ todevice: event.getType(), from: event.getSender() }));
    await client.startClient({ initialSyncLimit: 20 });
    await new Promise((done) => client.on(sdk.ClientEvent.Sync, (state) => state === "PREPARED" && done()));
    return { user: got.user_id, device: got.device_id };
  }
  async stop() { this.client?.stopClient(); people.delete(this.name); }
  async fetch(url, options) { await this.away; return fetch(url, options); }
  async pause() { this.away = new Promise((back) => { this.back = back; }); } // without network: a client that was stopped can't be started again
  async resume() { this.away = null; this.back(); }
  async logout() { await this.client.logout(true); people.delete(this.name); }

  // ---- identity, trust ----

  async identity(o) {
    if (o.words) {
      const { privateKey } = await this.crypto.createRecoveryKeyFromPassphrase(o.words);
      await this.crypto.bootstrapSecretStorage({ createSecretStorageKey: async () => this.recovery = await this.crypto.createRecoveryKeyFromPassphrase(o.words), setupNewKeyBackup: !!o.backup });
      void privateKey;
    }
    await this.crypto.bootstrapCrossSigning({ authUploadDeviceSigningKeys: this.signIn, setupNewCrossSigning: !!o.again });
  }
  async dehydrate() { await this.crypto.startDehydration({ createNewKey: true }); } // a device at the server, for keys that come while all others are away
  async strict(o) {
    this.crypto.setDeviceIsolationMode(new api.OnlySignedDevicesIsolationMode());
    if (o.room) await this.crypto.forceDiscardSession(o.room);
  }
  async trust(o) { const s = await this.crypto.getDeviceVerificationStatus(o.user, o.device); return s && { signed: s.signedByOwner, cross: s.crossSigningVerified }; }
  async verified(o) { // the signature is uploaded, and comes back with a sync
    for (let i = 0; i < 150; i++) {
      if ((await this.crypto.getUserVerificationStatus(o.user)).isCrossSigningVerified()) return true;
      await new Promise((next) => setTimeout(next, 200));
    }
    return false;
  }

  // ---- rooms ----

  async room(o) {
    const encryption = { type: "m.room.encryption", state_key: "", content: { algorithm: "m.megolm.v1.aes-sha2", ...(o.encryption ?? {}) } };
    const options = { preset: "private_chat", invite: o.invite, is_direct: !!o.direct, initial_state: o.plain ? [] : [encryption] };
    return (await this.client.createRoom(options)).room_id;
  }
  async join(o) { await this.client.joinRoom(o.room); }
  async kick(o) { await this.client.kick(o.room, o.user); }
  async leave(o) { await this.client.leave(o.room); }
  async state(o) { await this.client.sendStateEvent(o.room, o.type, o.content, o.key ?? ""); }
  async send(o) { return (await this.client.sendEvent(o.room, o.type ?? "m.room.message", o.content)).event_id; }
  async redact(o) { await this.client.redactEvent(o.room, o.event); }
  async discard(o) { await this.crypto.forceDiscardSession(o.room); }

  async file(o) {
    const data = Buffer.from(o.data, "base64"), { sealed, file } = seal(data);
    const body = o.broken ? Buffer.concat([sealed.subarray(1), Buffer.from("x")]) : sealed;
    const up = await this.client.uploadContent(body, { type: "application/octet-stream", includeFilename: false });
    file.url = up.content_uri;
    const content = { msgtype: "m.file", body: o.caption ?? o.name, filename: o.name, file, info: { size: data.length, mimetype: o.mimetype ?? "text/csv" }, ...(o.more ?? {}) };
    return (await this.client.sendEvent(o.room, "m.room.message", content)).event_id;
  }
  async download(o) {
    const data = await this.media(o.file ? o.file.url : o.mxc);
    return (o.file ? unseal(data, o.file) : data).toString("base64");
  }

  // ---- to-device ----

  async whisper(o) { // Olm, to one device
    await this.crypto.getUserDeviceInfo([o.user], true);
    const batch = await this.crypto.encryptToDeviceMessages(o.type, [{ userId: o.user, deviceId: o.device }], o.content);
    await this.client.queueToDevice(batch);
    return batch.batch.length;
  }

  // ---- devices that only have keys ----

  async crowd(o) { // o.devices: [{token, user, device}]; each gets keys, signed, and one-time keys that anybody may claim
    const raw = (key) => encode(key.export({ format: "der", type: "spki" }).subarray(-32));
    const canonical = (v) => v && typeof v === "object" && !Array.isArray(v) ? `{${Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + canonical(v[k])).join(",")}}` : JSON.stringify(v);
    for (const { token, user, device } of o.devices) {
      const ed = crypto.generateKeyPairSync("ed25519"), curve = () => raw(crypto.generateKeyPairSync("x25519").publicKey);
      const signed = (v) => ({ ...v, signatures: { [user]: { [`ed25519:${device}`]: encode(crypto.sign(null, Buffer.from(canonical(v)), ed.privateKey)) } } });
      const keys = { [`curve25519:${device}`]: curve(), [`ed25519:${device}`]: raw(ed.publicKey) };
      const body = {
        device_keys: signed({ user_id: user, device_id: device, algorithms: ["m.olm.v1.curve25519-aes-sha2", "m.megolm.v1.aes-sha2"], keys }),
        one_time_keys: Object.fromEntries([1, 2, 3].map((n) => [`signed_curve25519:K${n}`, signed({ key: curve() })])),
      };
      const got = await fetch(`${o.url}/_matrix/client/v3/keys/upload`, { method: "POST", body: JSON.stringify(body), headers: { Authorization: `Bearer ${token}` } });
      if (!got.ok) throw new Error(`keys of ${user}: ${await got.text()}`);
    }
  }

  // ---- verification ----

  async ask(o) { // a request, until the other side is ready
    const request = await this.crypto.requestVerificationDM(o.user, o.room), { VerificationPhase: P } = api;
    this.requests.set(o.user, { request });
    request.on("change", () => { if (request.phase === P.Cancelled) this.out({ verification: "cancelled", code: request.cancellationCode }); });
    await new Promise((done, fail) => {
      const look = () => { if (request.phase === P.Ready) done(); if (request.phase === P.Cancelled) fail(new Error("cancelled " + request.cancellationCode)); };
      request.on("change", look); look();
    });
  }
  async verify(o) {
    await this.ask(o);
    const r = this.requests.get(o.user), verifier = await r.request.startVerification("m.sas.v1");
    const shown = new Promise((done) => verifier.on("show_sas", done));
    verifier.verify().then(() => this.out({ verification: "done" }), (e) => this.out({ verification: "failed", why: String(e) }));
    r.sas = await shown;
    return r.sas.sas;
  }
  async confirm(o) { const { sas } = this.requests.get(o.user); if (o.match) await sas.confirm(); else sas.mismatch(); }
  async cancel(o) { await this.requests.get(o.user).request.cancel(); }
}

const people = new Map();
for await (const line of readline.createInterface({ input: process.stdin })) {
  const o = JSON.parse(line);
  if (!people.has(o.as)) people.set(o.as, new Person(o.as));
  people.get(o.as)[o.do](o).then((ok) => out({ id: o.id, ok: ok ?? null }), (e) => out({ id: o.id, error: String(e?.stack ?? e) }));
}
process.exit(0);
