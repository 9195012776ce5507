// @azure/data-tables: tables, entities of every type, filters, pages and transactions.
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, TableTransaction, generateTableSas, odata } = require("@azure/data-tables");
const { CONNECTION_STRING, ACCOUNT_NAME, ACCOUNT_KEY, OPTIONS, uniqueName, refused, all } = require("./setup.cjs");

const options = { ...OPTIONS, allowInsecureConnection: true };
const service = TableServiceClient.fromConnectionString(CONNECTION_STRING, options);
const tableOf = (name) => TableClient.fromConnectionString(CONNECTION_STRING, name, options);
const byRow = (entities) => entities.map((entity) => entity.rowKey);

async function newTable(rows = 0) {
  const table = tableOf(uniqueName());
  await table.createTable();
  for (let number = 0; number < rows; number++) {
    await table.createEntity({ partitionKey: number % 2 ? "odd" : "even", rowKey: `${number}`, number, even: number % 2 === 0 });
  }
  return table;
}

test("tables are created, listed and deleted", async () => {
  const name = uniqueName();
  await service.createTable(name);
  await refused(tableOf(name).getEntity("a", "b"), 404, "ResourceNotFound");
  assert.deepEqual((await all(service.listTables({ queryOptions: { filter: odata`TableName eq ${name}` } }))).map((table) => table.name), [name]);
  await service.deleteTable(name);
  await refused(tableOf(name).createEntity({ partitionKey: "a", rowKey: "b" }), 404, "TableNotFound");
});

test("an entity keeps the type and the value of every property", async () => {
  const table = await newTable();
  const entity = {
    partitionKey: "it's a key",
    rowKey: "with ü %2F & \"quotes\"",
    text: "a <b> & ü 🎨",
    yes: true,
    int: -(2 ** 31),
    long: 9223372036854775807n,
    double: 0.1,
    whole: { type: "Double", value: "3.0" },
    when: new Date("2024-02-29T23:59:59.123Z"),
    guid: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
    bytes: new Uint8Array([0, 1, 254, 255]),
  };
  const { etag } = await table.createEntity(entity);
  const got = await table.getEntity(entity.partitionKey, entity.rowKey);
  assert.equal(got.etag, etag);
  for (const name of ["text", "yes", "int", "long", "double", "guid"]) assert.deepEqual(got[name], entity[name], name);
  assert.equal(got.when.valueOf(), entity.when.valueOf());
  assert.deepEqual(Buffer.from(got.bytes), Buffer.from(entity.bytes));
  assert.equal(got.whole, 3);
  await refused(table.createEntity(entity), 409, "EntityAlreadyExists");
});

test("an update asks for the etag it knows", async () => {
  const table = await newTable();
  const keys = { partitionKey: "p", rowKey: "r" };
  const first = await table.createEntity({ ...keys, colour: "green" });
  const second = await table.updateEntity({ ...keys, shape: "round" }, "Merge", { etag: first.etag });
  await refused(table.updateEntity({ ...keys, shape: "flat" }, "Merge", { etag: first.etag }), 412, "UpdateConditionNotSatisfied");
  const merged = await table.getEntity("p", "r");
  assert.deepEqual([merged.colour, merged.shape], ["green", "round"]);
  await table.updateEntity({ ...keys, size: 1 }, "Replace", { etag: second.etag });
  assert.equal((await table.getEntity("p", "r")).colour, undefined);
  await refused(table.deleteEntity("p", "r", { etag: second.etag }), 412, "UpdateConditionNotSatisfied");
  await table.deleteEntity("p", "r");
  await refused(table.updateEntity({ ...keys, size: 2 }), 404, "ResourceNotFound");
});

test("an upsert merges or replaces", async () => {
  const table = await newTable();
  const keys = { partitionKey: "p", rowKey: "" };
  await table.upsertEntity({ ...keys, a: 1 });
  await table.upsertEntity({ ...keys, b: 2 }, "Merge");
  const merged = await table.getEntity("p", "");
  assert.deepEqual([merged.a, merged.b], [1, 2]);
  await table.upsertEntity({ ...keys, c: 3 }, "Replace");
  assert.equal((await table.getEntity("p", "")).a, undefined);
});

test("a filter finds what it says", async () => {
  const table = await newTable(6);
  const find = async (filter) => byRow(await all(table.listEntities({ queryOptions: { filter } })));
  assert.deepEqual(await find(odata`PartitionKey eq ${"odd"}`), ["1", "3", "5"]);
  assert.deepEqual(await find(odata`number gt ${2} and even eq ${true}`), ["4"]);
  assert.deepEqual(await find("PartitionKey eq 'even' and RowKey ge '2' or not (number lt 5)"), ["2", "4", "5"]);
  assert.deepEqual(await find(odata`Timestamp gt ${new Date(0)} and number le ${1}`), ["0", "1"]);
  await refused(find("number gt"), 400, "InvalidInput");
  const [chosen] = await all(table.listEntities({ queryOptions: { filter: "number eq 3", select: ["number"] } }));
  assert.deepEqual([chosen.number, chosen.even], [3, undefined]);
});

test("a query goes on page by page", async () => {
  const table = await newTable(5);
  const pages = await all(table.listEntities().byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => byRow(page)), [["0", "2"], ["4", "1"], ["3"]]);
  const { value } = await table.listEntities().byPage({ maxPageSize: 4 }).next();
  const rest = await all(table.listEntities().byPage({ maxPageSize: 4, continuationToken: value.continuationToken }));
  assert.deepEqual(rest.map((page) => byRow(page)), [["3"]]);
});

test("a transaction happens whole or not at all", async () => {
  const table = await newTable();
  const transaction = new TableTransaction();
  for (let number = 0; number < 99; number++) transaction.createEntity({ partitionKey: "p", rowKey: `${number}`, number });
  transaction.upsertEntity({ partitionKey: "p", rowKey: "ü 'quoted'", number: 100 });
  const done = await table.submitTransaction(transaction.actions);
  assert.deepEqual([done.status, done.subResponses.length, done.subResponses[0].status], [202, 100, 204]);
  const { etag } = await table.getEntity("p", "1");
  const changes = [
    ["update", { partitionKey: "p", rowKey: "1", number: -1 }, "Merge", { etag }],
    ["delete", { partitionKey: "p", rowKey: "2" }],
    ["create", { partitionKey: "p", rowKey: "3" }],
  ];
  await refused(table.submitTransaction(changes), 409, "EntityAlreadyExists");
  assert.equal((await table.getEntity("p", "1")).number, 1);
  await table.submitTransaction(changes.slice(0, 2));
  await refused(table.submitTransaction(changes.slice(0, 1)), 412, "UpdateConditionNotSatisfied");
  assert.equal((await all(table.listEntities())).length, 99);
});

test("a SAS allows what it says, where it says", async () => {
  const table = await newTable(4);
  const credential = new AzureNamedKeyCredential(ACCOUNT_NAME, ACCOUNT_KEY);
  const range = { startPartitionKey: "odd", startRowKey: "3", endPartitionKey: "odd", endRowKey: "3" };
  const token = generateTableSas(table.tableName, credential, { permissions: { query: true }, expiresOn: new Date(Date.now() + 3600_000), ...range });
  const shared = new TableClient(service.url, table.tableName, new AzureSASCredential(token), options);
  assert.deepEqual(byRow(await all(shared.listEntities())), ["3"]);
  await refused(shared.deleteEntity("odd", "3"), 403, "AuthorizationPermissionMismatch");
});

test("access policies and properties of the service are set and read back", async () => {
  const table = await newTable();
  const accessPolicy = { start: new Date("2024-01-01T00:00:00Z"), expiry: new Date("2034-01-01T00:00:00Z"), permission: "raud" };
  await table.setAccessPolicy([{ id: "all", accessPolicy }]);
  assert.deepEqual((await table.getAccessPolicy()), [{ id: "all", accessPolicy }]);
  const rule = { allowedOrigins: "http://one", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*", maxAgeInSeconds: 5 };
  await service.setProperties({ cors: [rule] });
  assert.deepEqual((await service.getProperties()).cors, [rule]);
  await service.setProperties({ cors: [] });
});
