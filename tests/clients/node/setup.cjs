// Shared by the scripts: the account, unique names, and a check for an expected error.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");

const { CONNECTION_STRING, ACCOUNT_NAME, ACCOUNT_KEY } = process.env;

// No retries, so that the first response counts.
const OPTIONS = { retryOptions: { maxTries: 1, maxRetries: 0 } };

// Valid as the name of a container, a queue and a table.
const uniqueName = () => `js${randomUUID().replaceAll("-", "")}`;

// An error has a status and a code. Responses to HEAD and 304 have no body, but always the header.
const refused = (promise, status, code) =>
  assert.rejects(promise, (error) => {
    const sent = error.code ?? error.details?.errorCode ?? error.details?.odataError?.code;
    assert.deepEqual([error.statusCode, sent], [status, code], error.message);
    return true;
  });

// All items of an asynchronous iterator.
const all = async (iterator) => {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
};

module.exports = { CONNECTION_STRING, ACCOUNT_NAME, ACCOUNT_KEY, OPTIONS, uniqueName, refused, all };
