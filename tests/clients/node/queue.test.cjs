// @azure/storage-queue: queues, messages and authorization.
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { QueueClient, QueueSASPermissions, QueueServiceClient } = require("@azure/storage-queue");
const { CONNECTION_STRING, OPTIONS, uniqueName, refused, all } = require("./setup.cjs");

const service = QueueServiceClient.fromConnectionString(CONNECTION_STRING, OPTIONS);

async function newQueue() {
  const queue = service.getQueueClient(uniqueName());
  await queue.create();
  return queue;
}

const texts = (items) => items.map((item) => item.messageText);

test("queues are created, described, listed and deleted", async () => {
  const name = uniqueName();
  const queue = service.getQueueClient(name);
  assert.equal((await queue.createIfNotExists({ metadata: { colour: "green" } })).succeeded, true);
  assert.equal((await queue.createIfNotExists({ metadata: { colour: "green" } })).succeeded, false);
  await refused(queue.create({ metadata: { colour: "red" } }), 409, "QueueAlreadyExists");
  await queue.setMetadata({ colour: "blue", shape: "round" });
  const [listed] = await all(service.listQueues({ prefix: name, includeMetadata: true }));
  assert.deepEqual([listed.name, listed.metadata], [name, { colour: "blue", shape: "round" }]);
  await queue.delete();
  assert.equal(await queue.exists(), false);
});

test("queues are listed page by page", async () => {
  const prefix = uniqueName();
  for (const number of [1, 2, 3]) await service.createQueue(`${prefix}${number}`);
  const pages = await all(service.listQueues({ prefix }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.queueItems.length), [2, 1]);
});

test("a message is sent, seen, received, updated and deleted", async () => {
  const queue = await newQueue();
  const sent = await queue.sendMessage("a <b> & \"c\" ü 🎨");
  assert.deepEqual(texts((await queue.peekMessages()).peekedMessageItems), ["a <b> & \"c\" ü 🎨"]);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 1);
  const [got] = (await queue.receiveMessages({ visibilityTimeout: 60 })).receivedMessageItems;
  assert.deepEqual([got.messageId, got.dequeueCount], [sent.messageId, 1]);
  assert.deepEqual((await queue.receiveMessages()).receivedMessageItems, []);
  const updated = await queue.updateMessage(got.messageId, got.popReceipt, "changed", 0);
  await refused(queue.deleteMessage(got.messageId, got.popReceipt), 404, "MessageNotFound");
  assert.notEqual(updated.popReceipt, got.popReceipt);
  const [again] = (await queue.receiveMessages()).receivedMessageItems;
  assert.deepEqual([again.messageText, again.dequeueCount], ["changed", 2]);
  await queue.deleteMessage(again.messageId, again.popReceipt);
  assert.deepEqual((await queue.peekMessages()).peekedMessageItems, []);
});

test("several messages come at once, each with a receipt of its own", async () => {
  const queue = await newQueue();
  for (let number = 0; number < 5; number++) await queue.sendMessage(`message ${number}`);
  const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32 });
  assert.deepEqual(texts(receivedMessageItems), [0, 1, 2, 3, 4].map((number) => `message ${number}`));
  for (const { messageId, popReceipt } of receivedMessageItems) await queue.deleteMessage(messageId, popReceipt);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
  await refused(queue.receiveMessages({ numberOfMessages: 33 }), 400, "OutOfRangeQueryParameterValue");
});

test("a message may come later, live for ever, or be cleared", async () => {
  const queue = await newQueue();
  await queue.sendMessage("later", { visibilityTimeout: 60 });
  const forever = await queue.sendMessage("for ever", { messageTimeToLive: -1 });
  assert.equal(forever.expiresOn.getUTCFullYear(), 9999);
  assert.deepEqual(texts((await queue.peekMessages({ numberOfMessages: 10 })).peekedMessageItems), ["for ever"]);
  await queue.clearMessages();
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
});

test("a SAS allows what it says, and a stored policy rules it", async () => {
  const queue = await newQueue();
  const expiresOn = new Date(Date.now() + 3600_000);
  const add = new QueueClient(queue.generateSasUrl({ permissions: QueueSASPermissions.parse("a"), expiresOn }), undefined, OPTIONS);
  await add.sendMessage("added");
  await refused(add.receiveMessages(), 403, "AuthorizationPermissionMismatch");
  await queue.setAccessPolicy([{ id: "workers", accessPolicy: { startsOn: new Date(0), expiresOn, permissions: "p" } }]);
  assert.equal((await queue.getAccessPolicy()).signedIdentifiers[0].id, "workers");
  const worker = new QueueClient(queue.generateSasUrl({ identifier: "workers" }), undefined, OPTIONS);
  assert.deepEqual(texts((await worker.receiveMessages()).receivedMessageItems), ["added"]);
  await queue.setAccessPolicy([]);
  await refused(worker.receiveMessages(), 403, "AuthenticationFailed");
});

test("properties of the service are set and read back", async () => {
  const rule = { allowedOrigins: "http://one", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*", maxAgeInSeconds: 5 };
  await service.setProperties({ cors: [rule] });
  assert.deepEqual((await service.getProperties()).cors, [rule]);
  await service.setProperties({ cors: [] });
});
