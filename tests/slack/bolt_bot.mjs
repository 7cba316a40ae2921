// A bot on Bolt for JavaScript that does what ours does, one step after the other; the test drives the fake and reads stdout.
import { createRequire } from 'node:module';
const require = createRequire(`${process.env.PEERS}/node_modules/x.js`);
const { App, LogLevel } = require('@slack/bolt');
const { WebClient } = require('@slack/web-api');
const [url, mode, botToken, appToken, secret] = process.argv.slice(2);
const say = (word, more = {}) => process.stdout.write(`${JSON.stringify({ word, ...more })}\n`);
const clientOptions = { slackApiUrl: `${url}/api/`, retryConfig: { retries: 3, minTimeout: 50, maxTimeout: 100 } };
const app = new App(mode === 'http'
  ? { token: botToken, signingSecret: secret, clientOptions, logLevel: LogLevel.ERROR }
  : { token: botToken, appToken, socketMode: true, clientOptions, logLevel: LogLevel.ERROR });

app.event('app_mention', async ({ event, client }) => {
  const at = { channel: event.channel, thread_ts: event.ts };
  const posted = await client.chat.postMessage({ ...at, text: 'first', metadata: { event_type: 'k', event_payload: { k: 'one' } } });
  await client.chat.update({ channel: event.channel, ts: posted.ts, text: 'second' });
  await client.reactions.add({ channel: event.channel, name: 'eyes', timestamp: event.ts });
  const files = await client.files.uploadV2({ channel_id: event.channel, thread_ts: event.ts,
    file_uploads: [{ file: Buffer.from('a,b\n'), filename: 'a.csv' }, { file: Buffer.from('hello'), filename: 'b.txt' }] });
  const replies = [];
  for await (const page of client.paginate('conversations.replies', { channel: event.channel, ts: event.ts, limit: 1, include_all_metadata: true })) {
    replies.push(...page.messages);
  }
  const user = await client.users.info({ user: event.user });
  say('mentioned', { text: event.text, replies: replies.length, key: replies[1].metadata.event_payload.k, name: user.user.profile.display_name,
    ok: files.ok, update: posted.ts });
});
app.message('plain', async ({ message }) => say('message', { text: message.text, channel_type: message.channel_type }));
app.event('reaction_added', async ({ event }) => say('reaction', { reaction: event.reaction, item: event.item.ts }));
app.event('agent_session_stopped', async ({ event }) => say('stopped', { thread: event.thread_ts }));
app.error(async (e) => say('error', { message: String(e) }));
await (mode === 'http' ? app.start({ port: 0, host: '127.0.0.1' }) : app.start());
if (mode === 'http') say('port', { port: app.receiver.server?.address?.().port });
const web = new WebClient(botToken, clientOptions);
say('up', { team: (await web.auth.test()).team_id });
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
