// @azure/storage-blob: typical operations on containers and on every blob type.
const assert = require("node:assert/strict");
const { randomBytes } = require("node:crypto");
const { Readable } = require("node:stream");
const { test } = require("node:test");
const {
  AccountSASPermissions,
  AnonymousCredential,
  BlobSASPermissions,
  BlobServiceClient,
  ContainerClient,
  ContainerSASPermissions,
} = require("@azure/storage-blob");
const { CONNECTION_STRING, OPTIONS, uniqueName, refused, all } = require("./setup.cjs");

const MiB = 1024 * 1024;
const service = BlobServiceClient.fromConnectionString(CONNECTION_STRING, OPTIONS);
const soon = () => new Date(Date.now() + 3600_000);
const namesOf = (items) => items.map((item) => item.name);

async function newContainer() {
  const container = service.getContainerClient(uniqueName());
  await container.create();
  return container;
}

async function newBlob(content = "content", name = "blob") {
  const blob = (await newContainer()).getBlockBlobClient(name);
  await blob.upload(content, Buffer.byteLength(content));
  return blob;
}

// First and last byte of each page range: the library's `count` does not include the last byte.
const firstAndLast = (ranges) => ranges.map(({ offset, count }) => [offset, offset + count]);

const textOf = async (blob, ...range) => (await blob.downloadToBuffer(...range)).toString();

test("containers are created, described, listed and deleted", async () => {
  const name = uniqueName();
  const container = service.getContainerClient(name);
  assert.equal((await container.createIfNotExists({ metadata: { colour: "green" } })).succeeded, true);
  assert.equal((await container.createIfNotExists()).succeeded, false);
  assert.deepEqual((await container.getProperties()).metadata, { colour: "green" });
  await container.setMetadata({ colour: "blue" });
  const [listed] = await all(service.listContainers({ prefix: name, includeMetadata: true }));
  assert.deepEqual([listed.name, listed.metadata], [name, { colour: "blue" }]);
  await container.delete();
  assert.equal(await container.exists(), false);
  await refused(container.getProperties(), 404, "ContainerNotFound");
});

test("properties of the service are set and read back", async () => {
  const before = await service.getProperties();
  const rule = { allowedOrigins: "http://one", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*", maxAgeInSeconds: 5 };
  await service.setProperties({ cors: [rule], defaultServiceVersion: "2021-12-02" });
  assert.deepEqual((await service.getProperties()).cors, [rule]);
  await service.setProperties({ cors: before.cors ?? [], defaultServiceVersion: "2021-12-02" });
  assert.equal((await service.getAccountInfo()).accountKind, "StorageV2");
});

test("a blob has content, headers and metadata", async () => {
  const blob = (await newContainer()).getBlockBlobClient("text");
  const blobHTTPHeaders = { blobContentType: "text/plain; charset=utf-8", blobCacheControl: "no-cache", blobContentLanguage: "de" };
  const { etag } = await blob.upload("grün", 5, { blobHTTPHeaders, metadata: { Colour: "green" } });
  const properties = await blob.getProperties();
  assert.deepEqual(
    [properties.etag, properties.contentLength, properties.contentType, properties.cacheControl, properties.contentLanguage],
    [etag, 5, "text/plain; charset=utf-8", "no-cache", "de"],
  );
  assert.equal(await textOf(blob), "grün");
  await blob.setMetadata({ shape: "round" });
  await blob.setHTTPHeaders({ blobContentType: "text/html" });
  const changed = await blob.getProperties();
  assert.deepEqual([changed.contentType, changed.cacheControl, changed.metadata], ["text/html", undefined, { shape: "round" }]);
});

test("a stream goes up in parallel blocks and comes down in parallel ranges", async () => {
  const blob = (await newContainer()).getBlockBlobClient("stream");
  const data = randomBytes(5 * MiB + 3);
  const pieces = Array.from({ length: 53 }, (_, i) => data.subarray(i * 100_000, (i + 1) * 100_000));
  await blob.uploadStream(Readable.from(pieces), MiB, 4);
  assert.equal((await blob.getBlockList("committed")).committedBlocks.length, 6);
  assert.ok((await blob.downloadToBuffer(0, undefined, { blockSize: MiB, concurrency: 4 })).equals(data));
  const { readableStreamBody } = await blob.download();
  assert.ok(Buffer.concat(await all(readableStreamBody)).equals(data));
});

test("a buffer goes up in parallel blocks and a range of it comes back", async () => {
  const blob = (await newContainer()).getBlockBlobClient("data");
  const data = randomBytes(3 * MiB + 1);
  await blob.uploadData(data, { blockSize: MiB, maxSingleShotSize: MiB, concurrency: 3 });
  assert.ok((await blob.downloadToBuffer(MiB - 1, MiB + 2)).equals(data.subarray(MiB - 1, 2 * MiB + 1)));
  await refused(blob.download(data.length), 416, "InvalidRange");
});

test("checksums travel with the content, both ways", async () => {
  const blob = (await newContainer()).getBlockBlobClient("checked");
  const data = randomBytes(5 * MiB);
  await blob.upload(data, data.length, { contentChecksumAlgorithm: "StorageCrc64" });
  assert.ok((await blob.downloadToBuffer(0, undefined, { contentChecksumAlgorithm: "StorageCrc64" })).equals(data));
  await blob.stageBlock(Buffer.from("1").toString("base64"), data, data.length, { contentChecksumAlgorithm: "StorageCrc64" });
  const { contentMD5 } = await blob.download(0, 1000, { rangeGetContentMD5: true });
  assert.equal(contentMD5.length, 16);
  await refused(
    blob.stageBlock(Buffer.from("2").toString("base64"), "a", 1, { transactionalContentMD5: Buffer.alloc(16) }),
    400,
    "Md5Mismatch",
  );
});

test("a block list puts blocks in any order, and keeps what it names", async () => {
  const blob = (await newContainer()).getBlockBlobClient("blocks");
  const [a, b, c] = ["a", "b", "c"].map((id) => Buffer.from(id).toString("base64"));
  for (const [id, text] of [[a, "one "], [b, "two "], [c, "three "]]) await blob.stageBlock(id, text, text.length);
  const uncommitted = await blob.getBlockList("uncommitted");
  assert.deepEqual(uncommitted.uncommittedBlocks, [{ name: a, size: 4 }, { name: b, size: 4 }, { name: c, size: 6 }]);
  await refused(blob.getProperties(), 404, "BlobNotFound");
  await blob.commitBlockList([b, a]);
  assert.equal(await textOf(blob), "two one ");
  await refused(blob.commitBlockList([c]), 400, "InvalidBlockList");
});

test("conditions decide who writes and who reads", async () => {
  const blob = await newBlob("first");
  const { etag } = await blob.getProperties();
  const changed = await blob.upload("second", 6, { conditions: { ifMatch: etag } });
  await refused(blob.upload("third", 5, { conditions: { ifMatch: etag } }), 412, "ConditionNotMet");
  await refused(blob.upload("third", 5, { conditions: { ifNoneMatch: "*" } }), 409, "BlobAlreadyExists");
  await refused(blob.download(0, undefined, { conditions: { ifNoneMatch: changed.etag } }), 304, "ConditionNotMet");
  await refused(blob.delete({ conditions: { ifUnmodifiedSince: new Date(0) } }), 412, "ConditionNotMet");
  assert.equal(await textOf(blob), "second");
});

test("a lease guards a blob and can be renewed, changed, broken and released", async () => {
  const blob = await newBlob();
  const lease = blob.getBlobLeaseClient();
  const { leaseId } = await lease.acquireLease(60);
  await refused(blob.getBlobLeaseClient().acquireLease(60), 409, "LeaseAlreadyPresent");
  await refused(blob.upload("x", 1), 412, "LeaseIdMissing");
  await blob.upload("mine", 4, { conditions: { leaseId } });
  await lease.renewLease();
  await lease.changeLease("11111111-1111-1111-1111-111111111111");
  await refused(blob.upload("x", 1, { conditions: { leaseId } }), 412, "LeaseIdMismatchWithBlobOperation");
  await lease.releaseLease();
  await blob.getBlobLeaseClient().acquireLease(-1);
  await blob.getBlobLeaseClient().breakLease(0);
  assert.equal((await blob.getProperties()).leaseState, "broken");
  assert.equal(await textOf(blob), "mine");
});

test("a leased container asks for its lease id when it is deleted", async () => {
  const container = await newContainer();
  const lease = container.getBlobLeaseClient();
  await lease.acquireLease(15);
  await container.getBlockBlobClient("free").upload("x", 1);
  await refused(container.delete(), 412, "LeaseIdMissing");
  await container.delete({ conditions: { leaseId: lease.leaseId } });
});

test("a listing goes flat by pages, and by folders", async () => {
  const container = await newContainer();
  const names = ["a", "a/1", "a/2", "b/c/1", "b/d", "z z", "ü"];
  for (const name of names) await container.getBlockBlobClient(name).upload("x", 1, { metadata: { name: "of-a-blob" } });
  assert.deepEqual(namesOf(await all(container.listBlobsFlat())), names);
  const pages = await all(container.listBlobsFlat({ includeMetadata: true }).byPage({ maxPageSize: 3 }));
  assert.deepEqual(pages.map((page) => page.segment.blobItems.length), [3, 3, 1]);
  assert.deepEqual(pages[0].segment.blobItems[0].metadata, { name: "of-a-blob" });
  const folders = await all(container.listBlobsByHierarchy("/"));
  assert.deepEqual(folders.map((item) => [item.kind, item.name]).sort(), [
    ["blob", "a"], ["blob", "z z"], ["blob", "ü"], ["prefix", "a/"], ["prefix", "b/"],
  ]);
  assert.deepEqual(namesOf(await all(container.listBlobsByHierarchy("/", { prefix: "b/" }))), ["b/c/", "b/d"]);
  const [first] = await all(container.listBlobsByHierarchy("/").byPage({ maxPageSize: 2 }));
  assert.ok(first.continuationToken);
});

test("names may be odd", async () => {
  const container = await newContainer();
  const names = ["what?", "hash#tag", "percent%2Fslash", "100%", "two  spaces ", "+&=;,@:", "dot.", "folder./dot..", "日本/🎨", "e\u0301", "<\"'>", "n".repeat(1024)];
  for (const name of names) await container.getBlockBlobClient(name).upload(name, Buffer.byteLength(name));
  for (const name of names) assert.equal(await textOf(container.getBlobClient(name)), name);
  assert.deepEqual(new Set(namesOf(await all(container.listBlobsFlat()))), new Set(names));
  for (const name of names) await container.deleteBlob(name);
  assert.deepEqual(await all(container.listBlobsFlat()), []);
});

test("a SAS allows what it says", async () => {
  const blob = await newBlob("shared", "what? & #");
  const as = (url) => new ContainerClient(url, new AnonymousCredential(), OPTIONS);
  const container = service.getContainerClient(blob.containerName);
  const read = await blob.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn: soon(), contentType: "text/special" });
  const answer = await fetch(read);
  assert.deepEqual([answer.status, answer.headers.get("content-type"), await answer.text()], [200, "text/special", "shared"]);
  assert.equal((await fetch(read, { method: "DELETE" })).status, 403);
  const list = as(await container.generateSasUrl({ permissions: ContainerSASPermissions.parse("l"), expiresOn: soon() }));
  assert.deepEqual(namesOf(await all(list.listBlobsFlat())), ["what? & #"]);
  await refused(list.getBlobClient(blob.name).download(), 403, "AuthorizationPermissionMismatch");
  const past = as(await container.generateSasUrl({ permissions: ContainerSASPermissions.parse("l"), expiresOn: new Date(Date.now() - 1000) }));
  await refused(all(past.listBlobsFlat()), 403, "AuthenticationFailed");
  const account = new BlobServiceClient(service.generateAccountSasUrl(soon(), AccountSASPermissions.parse("rl"), "sco"), undefined, OPTIONS);
  assert.equal(await textOf(account.getContainerClient(blob.containerName).getBlobClient(blob.name)), "shared");
});

test("a stored policy rules the SAS that names it", async () => {
  const blob = await newBlob("shared");
  const container = service.getContainerClient(blob.containerName);
  const policy = { id: "readers", accessPolicy: { startsOn: new Date(Date.now() - 60_000), expiresOn: soon(), permissions: "r" } };
  await container.setAccessPolicy(undefined, [policy]);
  const { signedIdentifiers } = await container.getAccessPolicy();
  assert.deepEqual(signedIdentifiers.map(({ id, accessPolicy }) => [id, accessPolicy.permissions]), [["readers", "r"]]);
  const url = await blob.generateSasUrl({ identifier: "readers" });
  assert.equal((await fetch(url)).status, 200);
  await container.setAccessPolicy(undefined, []);
  assert.equal((await fetch(url)).status, 403);
});

test("a snapshot keeps what was", async () => {
  const blob = await newBlob("before");
  const { snapshot } = await blob.createSnapshot({ metadata: { kept: "yes" } });
  await blob.upload("after", 5);
  assert.equal(await textOf(blob.withSnapshot(snapshot)), "before");
  const container = service.getContainerClient(blob.containerName);
  const listed = await all(container.listBlobsFlat({ includeSnapshots: true }));
  assert.deepEqual(listed.map((item) => item.snapshot || ""), [snapshot, ""]);
  await refused(blob.delete(), 409, "SnapshotsPresent");
  await blob.delete({ deleteSnapshots: "only" });
  await refused(blob.withSnapshot(snapshot).download(), 404, "BlobNotFound");
  await blob.delete({ deleteSnapshots: "include" });
});

test("an append blob grows at its end until it is sealed", async () => {
  const blob = (await newContainer()).getAppendBlobClient("log");
  await blob.createIfNotExists();
  assert.equal((await blob.appendBlock("one ", 4)).blobAppendOffset, "0");
  const second = await blob.appendBlock("two ", 4, { conditions: { appendPosition: 4 } });
  assert.deepEqual([second.blobAppendOffset, second.blobCommittedBlockCount], ["4", 2]);
  await refused(blob.appendBlock("x", 1, { conditions: { appendPosition: 4 } }), 412, "AppendPositionConditionNotMet");
  await refused(blob.appendBlock("x", 1, { conditions: { maxSize: 8 } }), 412, "MaxBlobSizeConditionNotMet");
  await blob.seal();
  await refused(blob.appendBlock("x", 1), 409, "BlobIsSealed");
  assert.equal(await textOf(blob), "one two ");
});

test("a page blob is written, cleared, compared and resized", async () => {
  const blob = (await newContainer()).getPageBlobClient("disk");
  await blob.create(1024 * MiB, { blobSequenceNumber: 7 });
  await blob.uploadPages(Buffer.alloc(1024, "a"), 512, 1024);
  const { snapshot } = await blob.createSnapshot();
  await blob.uploadPages(Buffer.alloc(512, "b"), 4096, 512);
  await blob.clearPages(512, 512);
  assert.deepEqual(firstAndLast((await blob.getPageRanges()).pageRange), [[1024, 1535], [4096, 4607]]);
  const difference = await blob.getPageRangesDiff(0, 8192, snapshot);
  assert.deepEqual([difference.pageRange, difference.clearRange].map(firstAndLast), [[[4096, 4607]], [[512, 1023]]]);
  const wrong = { conditions: { ifSequenceNumberLessThan: 7 } };
  await refused(blob.uploadPages(Buffer.alloc(512), 0, 512, wrong), 412, "SequenceNumberConditionNotMet");
  await blob.updateSequenceNumber("increment");
  await blob.resize(4096);
  const { contentLength, blobSequenceNumber } = await blob.getProperties();
  assert.deepEqual([contentLength, blobSequenceNumber], [4096, 8]);
  assert.ok((await blob.downloadToBuffer(0, 2048)).equals(Buffer.concat([Buffer.alloc(1024), Buffer.alloc(512, "a"), Buffer.alloc(512)])));
});

test("a blob has tags and conditions on them [GetBlobTags, SetBlobTags]", async () => {
  const blob = await newBlob();
  await blob.setTags({ colour: "green", shape: "round + flat" });
  assert.deepEqual((await blob.getTags()).tags, { colour: "green", shape: "round + flat" });
  await refused(blob.upload("x", 1, { conditions: { tagConditions: "\"colour\" = 'red'" } }), 412, "ConditionNotMet");
  await blob.upload("x", 1, { conditions: { tagConditions: "\"colour\" = 'green'" }, tags: { colour: "blue" } });
  const container = service.getContainerClient(blob.containerName);
  const [listed] = await all(container.listBlobsFlat({ includeTags: true }));
  assert.deepEqual(listed.tags, { colour: "blue" });
});

test("blobs are found by their tags [FindBlobsByTags, FindBlobsByTagsInContainer]", async () => {
  const container = await newContainer();
  const group = uniqueName();
  for (const number of ["1", "2", "3"]) {
    await container.getBlockBlobClient(`blob ${number}`).upload("x", 1, { tags: { group, number } });
  }
  const where = `"group" = '${group}' AND "number" >= '2'`;
  assert.deepEqual(namesOf(await all(service.findBlobsByTags(where))), ["blob 2", "blob 3"]);
  assert.deepEqual(namesOf(await all(container.findBlobsByTags(`"number" < '2'`))), ["blob 1"]);
});

test("a tier is set [SetBlobTier]", async () => {
  const blob = await newBlob();
  await blob.setAccessTier("Cool");
  assert.equal((await blob.getProperties()).accessTier, "Cool");
  await blob.setAccessTier("Archive");
  await refused(blob.download(), 409, "BlobArchived");
});

test("a batch deletes blobs and sets tiers [BlobBatch, BlobBatchInContainer, SetBlobTier]", async () => {
  const container = await newContainer();
  const blobs = ["a", "b c", "d?"].map((name) => container.getBlockBlobClient(name));
  for (const blob of blobs) await blob.upload("x", 1);
  const inAccount = service.getBlobBatchClient();
  const inContainer = container.getBlobBatchClient();
  assert.equal((await inContainer.setBlobsAccessTier(blobs, "Cool")).subResponsesSucceededCount, 3);
  assert.equal((await inAccount.deleteBlobs(blobs)).subResponsesSucceededCount, 3);
  const again = await inContainer.deleteBlobs(blobs);
  assert.deepEqual(again.subResponses.map((part) => [part.status, part.errorCode]), Array(3).fill([404, "BlobNotFound"]));
});

test("a blob is copied and the copy followed to its end [CopyBlob]", async () => {
  const source = await newBlob("source", "what? & # %2F");
  const target = (await newContainer()).getBlobClient("target");
  const copied = await (await target.beginCopyFromURL(source.url, { intervalInMs: 50 })).pollUntilDone();
  assert.equal(copied.copyStatus, "success");
  assert.equal(await textOf(target), "source");
});

test("a blob is copied in one step, whole and by blocks [CopyBlobFromUrl, PutBlobFromUrl, PutBlockFromUrl]", async () => {
  const source = await newBlob("source", "what? & # %2F");
  const url = await source.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn: soon() });
  const target = (await newContainer()).getBlockBlobClient("target");
  assert.equal((await target.syncCopyFromURL(url)).copyStatus, "success");
  await target.syncUploadFromURL(url);
  assert.equal(await textOf(target), "source");
  const id = Buffer.from("1").toString("base64");
  await target.stageBlockFromURL(id, url, 2, 3);
  await target.commitBlockList([id]);
  assert.equal(await textOf(target), "urc");
});

test("pages and appended blocks come from another blob [PutPageFromUrl, AppendBlockFromUrl]", async () => {
  const source = await newBlob("s".repeat(512));
  const url = await source.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn: soon() });
  const log = (await newContainer()).getAppendBlobClient("log");
  await log.create();
  await log.appendBlockFromURL(url, 500, 12);
  assert.equal(await textOf(log), "s".repeat(12));
  const disk = (await newContainer()).getPageBlobClient("disk");
  await disk.create(1024);
  await disk.uploadPagesFromURL(url, 0, 512, 512);
  assert.deepEqual(firstAndLast((await disk.getPageRanges()).pageRange), [[512, 1023]]);
});

test("a deleted blob comes back while it is kept [UndeleteBlob]", async () => {
  const blob = await newBlob("kept");
  const container = service.getContainerClient(blob.containerName);
  await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 1 } });
  try {
    await blob.delete();
    assert.equal(await blob.exists(), false);
    const [listed] = await all(container.listBlobsFlat({ includeDeleted: true }));
    assert.deepEqual([listed.name, listed.deleted], [blob.name, true]);
    await blob.undelete();
    assert.equal(await textOf(blob), "kept");
  } finally {
    await service.setProperties({ deleteRetentionPolicy: { enabled: false } });
  }
});
