// @azure/storage-file-share: shares, directories, files, ranges, leases, snapshots and authorization.
const assert = require("node:assert/strict");
const { randomBytes } = require("node:crypto");
const dns = require("node:dns");
const { test } = require("node:test");
const {
  FileSystemAttributes, ShareClient, ShareSASPermissions, ShareServiceClient, StorageSharedKeyCredential,
} = require("@azure/storage-file-share");
const { CONNECTION_STRING, ACCOUNT_NAME, ACCOUNT_KEY, OPTIONS, uniqueName, refused, all } = require("./setup.cjs");

const service = ShareServiceClient.fromConnectionString(CONNECTION_STRING, OPTIONS);
const MIB = 1024 * 1024;

async function newShare() {
  const share = service.getShareClient(uniqueName());
  await share.create();
  return share;
}

async function newFile(share, name, content) {
  const file = share.rootDirectoryClient.getFileClient(name);
  await file.uploadData(Buffer.from(content));
  return file;
}

const text = async (file) => (await file.downloadToBuffer()).toString();

test("shares are created, described, listed and deleted", async () => {
  const name = uniqueName();
  const share = service.getShareClient(name);
  assert.equal((await share.createIfNotExists({ metadata: { colour: "green" }, quota: 7 })).succeeded, true);
  assert.equal((await share.createIfNotExists()).succeeded, false);
  await refused(share.create(), 409, "ShareAlreadyExists");
  await share.setMetadata({ colour: "blue" });
  await share.setProperties({ quotaInGB: 9, accessTier: "Hot" });
  const { quota, accessTier } = await share.getProperties();
  assert.deepEqual([quota, accessTier], [9, "Hot"]);
  const [listed] = await all(service.listShares({ prefix: name, includeMetadata: true }));
  assert.deepEqual([listed.name, listed.metadata, listed.properties.quota], [name, { colour: "blue" }, 9]);
  await newFile(share, "some.txt", "some bytes");
  assert.equal((await share.getStatistics()).shareUsageBytes, 10);
  await share.delete();
  assert.equal(await share.exists(), false);
});

test("a file is created, uploaded, described, read in parts and deleted", async () => {
  const share = await newShare();
  const data = randomBytes(9 * MIB + 7);
  const file = share.rootDirectoryClient.getFileClient("large.bin");
  await file.uploadData(data, {
    rangeSize: MIB,
    concurrency: 4,
    fileHttpHeaders: { fileContentType: "image/png" },
    metadata: { colour: "green" },
  });
  const properties = await file.getProperties();
  assert.deepEqual([properties.contentLength, properties.contentType, properties.metadata], [data.length, "image/png", { colour: "green" }]);
  assert.deepEqual(await file.downloadToBuffer(0, undefined, { rangeSize: MIB }), data);
  assert.deepEqual(await file.downloadToBuffer(MIB - 1, 3), data.subarray(MIB - 1, MIB + 2));
  const checked = await file.download(0, 1000, { rangeGetContentMD5: true });
  assert.equal(checked.contentMD5.length, 16);
  checked.readableStreamBody.resume();
  await file.resize(5);
  assert.deepEqual(await file.downloadToBuffer(), data.subarray(0, 5));
  await file.setHttpHeaders({ fileContentType: "text/plain" });
  assert.equal((await file.getProperties()).contentType, "text/plain");
  await file.delete();
  await refused(file.getProperties(), 404, "ResourceNotFound");
});

test("ranges are written, cleared, listed and compared with a snapshot", async () => {
  const share = await newShare();
  const file = share.rootDirectoryClient.getFileClient("sparse");
  await file.create(4 * 1024 ** 4);
  await file.uploadRange(Buffer.alloc(4096, 1), 0, 4096);
  await file.uploadRange(Buffer.alloc(512, 2), 1024 ** 4, 512);
  const { snapshot } = await share.createSnapshot();
  await file.clearRange(512, 1024);
  await file.uploadRange(Buffer.alloc(512, 3), 8192, 512);
  const { rangeList } = await file.getRangeList();
  assert.deepEqual(rangeList.map(({ start, end }) => [start, end]), [[0, 511], [1536, 4095], [8192, 8703], [1024 ** 4, 1024 ** 4 + 511]]);
  const diff = await file.getRangeListDiff(snapshot);
  assert.deepEqual(diff.ranges.map(({ start, end }) => [start, end]), [[8192, 8703]]);
  assert.deepEqual(diff.clearRanges.map(({ start, end }) => [start, end]), [[512, 1535]]);
});

test("directories are nested, listed by pages and by prefix, and not deleted before they are empty", async () => {
  const share = await newShare();
  const { directoryClient } = await share.createDirectory("outer");
  const inner = directoryClient.getDirectoryClient("inner");
  await inner.create({ metadata: { colour: "green" } });
  for (const name of ["one", "two", "three & four", "fünf"]) await directoryClient.createFile(name, 10);
  const items = await all(directoryClient.listFilesAndDirectories({ includeExtendedInfo: true, includeTimestamps: true, includeEtag: true }));
  assert.deepEqual(items.map((item) => `${item.kind} ${item.name}`).sort(), ["directory inner", "file fünf", "file one", "file three & four", "file two"]);
  assert.ok(items.every((item) => item.fileId && item.properties.lastModified instanceof Date));
  const pages = await all(directoryClient.listFilesAndDirectories().byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.segment.fileItems.length + page.segment.directoryItems.length), [2, 2, 1]);
  assert.deepEqual((await all(directoryClient.listFilesAndDirectories({ prefix: "t" }))).map((item) => item.name), ["three & four", "two"]);
  await refused(directoryClient.delete(), 409, "DirectoryNotEmpty");
  assert.deepEqual((await inner.getProperties()).metadata, { colour: "green" });
  await inner.delete();
  assert.equal(await inner.exists(), false);
});

test("files and directories with odd names are found again", async () => {
  const share = await newShare();
  const names = ["percent%2Fslash%.txt", "hash#tag", "plus+and&equals=semi;", " space first", "日本語 🎨", "quote's", "brackets[0]{1}(2)"];
  for (const name of names) {
    const { directoryClient } = await share.createDirectory(name);
    await directoryClient.getFileClient(name).uploadData(Buffer.from(name));
  }
  assert.deepEqual((await all(share.rootDirectoryClient.listFilesAndDirectories())).map((item) => item.name).sort(), names.toSorted());
  for (const name of names) assert.equal(await text(share.getDirectoryClient(name).getFileClient(name)), name);
});

test("names are compared without case, and keep the case they were created with", async () => {
  const share = await newShare();
  await newFile(share, "ReadMe.TXT", "found");
  assert.equal(await text(share.rootDirectoryClient.getFileClient("README.txt")), "found");
  const [listed] = await all(share.rootDirectoryClient.listFilesAndDirectories());
  assert.equal(listed.name, "ReadMe.TXT");
});

test("SMB properties are set, read back and kept", async () => {
  const share = await newShare();
  const file = share.rootDirectoryClient.getFileClient("hidden");
  const creationTime = new Date("2020-02-03T04:05:06.000Z");
  await file.create(1, { fileAttributes: FileSystemAttributes.parse("Hidden|Archive"), creationTime });
  const properties = await file.getProperties();
  assert.deepEqual([properties.fileAttributes, properties.fileCreatedOn], ["Hidden | Archive", creationTime]);
  const { filePermissionKey } = await share.createPermission("O:SYG:SYD:(A;;FA;;;SY)");
  await file.setProperties({ filePermissionKey, fileAttributes: FileSystemAttributes.parse("None") });
  assert.equal((await file.getProperties()).filePermissionKey, filePermissionKey);
  assert.match((await share.getPermission(filePermissionKey)).permission, /^O:SYG:SYD:/);
});

// The library builds the target of a rename from the host and the share, so the account has to be in the host name.
function atHostOfTheAccount(share) {
  const url = new URL(share.url);
  url.hostname = `${ACCOUNT_NAME}.file.localhost`;
  url.pathname = share.name;
  return new ShareClient(url.href, new StorageSharedKeyCredential(ACCOUNT_NAME, ACCOUNT_KEY), OPTIONS);
}

const lookup = dns.lookup;
dns.lookup = (host, ...more) => lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, ...more);

test("files and directories are renamed with what they contain", async () => {
  const share = atHostOfTheAccount(await newShare());
  const { directoryClient } = await share.createDirectory("before");
  await directoryClient.getFileClient("file").uploadData(Buffer.from("moved"));
  const { destinationDirectoryClient } = await directoryClient.rename("after ü");
  assert.equal(await text(destinationDirectoryClient.getFileClient("file")), "moved");
  await newFile(share, "taken", "old");
  const file = destinationDirectoryClient.getFileClient("file");
  await refused(file.rename("taken"), 409, "ResourceAlreadyExists");
  const { destinationFileClient } = await file.rename("taken", { replaceIfExists: true });
  assert.equal(await text(destinationFileClient), "moved");
  assert.equal(await directoryClient.exists(), false);
});

test("a lease keeps others from writing and deleting", async () => {
  const share = await newShare();
  const file = await newFile(share, "leased", "first");
  const lease = file.getShareLeaseClient();
  await lease.acquireLease(-1);
  await refused(file.delete(), 412, "LeaseIdMissing");
  await file.uploadRange("third", 0, 5, { leaseAccessConditions: { leaseId: lease.leaseId } });
  assert.equal(await text(file), "third");
  await lease.breakLease();
  await file.delete();
  const shareLease = share.getShareLeaseClient();
  await shareLease.acquireLease(60);
  await refused(share.delete(), 412, "LeaseIdMissing");
  await shareLease.releaseLease();
  await share.delete();
});

test("a share snapshot keeps what was", async () => {
  const share = await newShare();
  const file = await newFile(share, "kept", "before");
  const { snapshot } = await share.createSnapshot();
  await file.uploadData(Buffer.from("afterwards"));
  assert.equal(await text(share.withSnapshot(snapshot).rootDirectoryClient.getFileClient("kept")), "before");
  assert.equal(await text(file), "afterwards");
  await refused(share.delete(), 409, "ShareHasSnapshots");
  await share.delete({ deleteSnapshots: "include" });
});

test("a file is copied on the server [CopyFile]", async () => {
  const share = await newShare();
  const source = await newFile(share, "source", "copied bytes");
  const copy = share.rootDirectoryClient.getFileClient("copy ü");
  const { copyStatus, copyId } = await copy.startCopyFromURL(source.url);
  assert.ok(copyId);
  assert.ok(["success", "pending"].includes(copyStatus));
  while ((await copy.getProperties()).copyStatus === "pending") await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(await text(copy), "copied bytes");
});

test("a range is read from the URL of another file [PutRangeFromUrl]", async () => {
  const share = await newShare();
  const source = await newFile(share, "source", "0123456789");
  const target = share.rootDirectoryClient.getFileClient("target");
  await target.create(4);
  const sas = await source.generateSasUrl({ permissions: ShareSASPermissions.parse("r"), expiresOn: new Date(Date.now() + 3600_000) });
  await target.uploadRangeFromURL(sas, 3, 0, 4);
  assert.equal(await text(target), "3456");
});

test("a SAS allows what it says, and a stored policy rules it", async () => {
  const share = await newShare();
  await newFile(share, "file", "readable");
  const expiresOn = new Date(Date.now() + 3600_000);
  const reader = new ShareClient(share.generateSasUrl({ permissions: ShareSASPermissions.parse("r"), expiresOn }), undefined, OPTIONS);
  assert.equal(await text(reader.rootDirectoryClient.getFileClient("file")), "readable");
  await refused(reader.rootDirectoryClient.getFileClient("file").delete(), 403, "AuthorizationPermissionMismatch");
  await share.setAccessPolicy([{ id: "listers", accessPolicy: { startsOn: new Date(0), expiresOn, permissions: "l" } }]);
  assert.equal((await share.getAccessPolicy()).signedIdentifiers[0].id, "listers");
  const lister = new ShareClient(share.generateSasUrl({ identifier: "listers" }), undefined, OPTIONS);
  assert.deepEqual((await all(lister.rootDirectoryClient.listFilesAndDirectories())).map((item) => item.name), ["file"]);
  await share.setAccessPolicy([]);
  await refused(lister.rootDirectoryClient.createFile("x", 1), 403, "AuthenticationFailed");
});

test("handles are listed and closed", async () => {
  const share = await newShare();
  const file = await newFile(share, "file", "x");
  assert.deepEqual(await all(file.listHandles()), []);
  assert.equal((await share.rootDirectoryClient.forceCloseAllHandles({ recursive: true })).closedHandlesCount, 0);
});

test("properties of the service are set and read back", async () => {
  const rule = { allowedOrigins: "http://one", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*", maxAgeInSeconds: 5 };
  await service.setProperties({ cors: [rule] });
  assert.deepEqual((await service.getProperties()).cors, [rule]);
  await service.setProperties({ cors: [] });
});
