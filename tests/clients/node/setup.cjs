// What the scripts share: the account they talk to, names of their own, and a way to expect a refusal.
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");

const { CONNECTION_STRING, ACCOUNT_NAME, ACCOUNT_KEY } = process.env;

// No retries: the first answer counts.
const OPTIONS = { retryOptions: { maxTries: 1, maxRetries: 0 } };

// Good for a container, a queue and a table.
const uniqueName = () => `js${randomUUID().replaceAll("-", "")}`;

// Azure's answer is a status and a code. Answers to HEAD and to conditions of a read have no body, but always the header.
const refused = (promise, status, code) =>
  assert.rejects(promise, (error) => {
    const sent = error.code ?? error.details?.errorCode ?? error.details?.odataError?.code;
    assert.deepEqual([error.statusCode, sent], [status, code], error.message);
    return true;
  });

// All that an asynchronous iterator gives.
const all = async (iterator) => {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
};

module.exports = { CONNECTION_STRING, ACCOUNT_NAME, ACCOUNT_KEY, OPTIONS, uniqueName, refused, all };
