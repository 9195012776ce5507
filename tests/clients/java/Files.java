// Microsoft's Java library for Azure Files. Each test has a share of its own and prints `ok` or `not ok` with its name.

import com.azure.core.http.HttpPipelineCallContext;
import com.azure.core.http.HttpPipelineNextPolicy;
import com.azure.core.http.HttpPipelinePosition;
import com.azure.core.http.HttpResponse;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.policy.RequestRetryOptions;
import com.azure.storage.common.policy.RetryPolicyType;
import com.azure.storage.file.share.ShareClient;
import com.azure.storage.file.share.ShareDirectoryClient;
import com.azure.storage.file.share.ShareFileClient;
import com.azure.storage.file.share.ShareServiceClient;
import com.azure.storage.file.share.ShareServiceClientBuilder;
import com.azure.storage.file.share.FileSmbProperties;
import com.azure.storage.file.share.models.NtfsFileAttributes;
import com.azure.storage.file.share.models.ShareErrorCode;
import com.azure.storage.file.share.models.ShareFileHttpHeaders;
import com.azure.storage.file.share.models.ShareFileItem;
import com.azure.storage.file.share.models.ShareFileRange;
import com.azure.storage.file.share.models.ShareFileUploadRangeOptions;
import com.azure.storage.file.share.models.ShareStorageException;
import com.azure.storage.file.share.options.ShareFileRenameOptions;
import com.azure.storage.file.share.sas.ShareSasPermission;
import com.azure.storage.file.share.sas.ShareServiceSasSignatureValues;
import com.azure.storage.file.share.specialized.ShareLeaseClient;
import com.azure.storage.file.share.specialized.ShareLeaseClientBuilder;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.net.MalformedURLException;
import java.net.URL;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.UUID;
import java.util.stream.Collectors;
import reactor.core.publisher.Mono;

public class Files {
    // The library forgets the port of an endpoint and what follows the host, so the host names the account and a policy adds the port.
    static final String ENDPOINT = "http://" + System.getenv("ACCOUNT_NAME") + ".file.localhost";
    static final int PORT = Integer.parseInt(System.getenv("FILE_PORT"));
    static final ShareServiceClient SERVICE = service()
        .credential(new StorageSharedKeyCredential(System.getenv("ACCOUNT_NAME"), System.getenv("ACCOUNT_KEY")))
        .buildClient();

    static ShareServiceClientBuilder service() {
        return new ShareServiceClientBuilder().endpoint(ENDPOINT).addPolicy(new AddPort())
            .retryOptions(new RequestRetryOptions(RetryPolicyType.FIXED, 1, 30, null, null, null));
    }

    static class AddPort implements HttpPipelinePolicy {
        public Mono<HttpResponse> process(HttpPipelineCallContext context, HttpPipelineNextPolicy next) {
            URL url = context.getHttpRequest().getUrl();
            try {
                context.getHttpRequest().setUrl(new URL(url.getProtocol(), url.getHost(), PORT, url.getFile()));
            } catch (MalformedURLException impossible) {
                throw new IllegalStateException(impossible);
            }
            return next.process();
        }

        public HttpPipelinePosition getPipelinePosition() {
            return HttpPipelinePosition.PER_CALL;
        }
    }

    interface Scenario {
        void run(ShareClient share) throws Exception;
    }

    static void test(String name, Scenario scenario) {
        try {
            scenario.run(SERVICE.createShare("java-" + UUID.randomUUID()));
            System.out.println("ok " + name);
        } catch (Throwable failure) {
            System.out.println("not ok " + name + ": " + (failure + " " + failure.getCause()).replace('\n', ' '));
        }
    }

    static void expect(Object wanted, Object found) {
        if (!Objects.equals(wanted, found)) {
            throw new AssertionError("expected " + wanted + ", got " + found);
        }
    }

    static void expectCode(ShareErrorCode code, Runnable call) {
        try {
            call.run();
        } catch (ShareStorageException refusal) {
            if (!code.equals(refusal.getErrorCode())) {
                throw new AssertionError("expected " + code, refusal);
            }
            return;
        }
        throw new AssertionError("expected " + code + ", got no error");
    }

    static ShareFileClient fill(ShareClient share, String name, byte[] content) {
        ShareFileClient file = share.getFileClient(name);
        file.create(content.length);
        if (content.length > 0) {
            file.upload(new ByteArrayInputStream(content), content.length, null);
        }
        return file;
    }

    static String contentOf(ShareFileClient file) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        file.download(content);
        return content.toString();
    }

    static List<String> namesIn(ShareDirectoryClient directory) {
        return directory.listFilesAndDirectories().stream().map(ShareFileItem::getName).collect(Collectors.toList());
    }

    public static void main(String[] arguments) {
        test("a share has a quota, metadata and statistics", share -> {
            share.setMetadata(Map.of("Colour", "blue"));
            fill(share, "file", "content".getBytes());
            share.setProperties(new com.azure.storage.file.share.options.ShareSetPropertiesOptions().setQuotaInGb(5));
            expect(5, share.getProperties().getQuota());
            expect(Map.of("Colour", "blue"), share.getProperties().getMetadata());
            expect(7L, share.getStatistics().getShareUsageInBytes());
            expectCode(ShareErrorCode.SHARE_ALREADY_EXISTS, share::create);
        });
        test("a large file goes up and down in parts", share -> {
            byte[] content = new byte[9_000_001];
            new Random(1).nextBytes(content);
            ShareFileClient file = fill(share, "large", content);
            ByteArrayOutputStream found = new ByteArrayOutputStream();
            file.download(found);
            expect(true, Arrays.equals(content, found.toByteArray()));
        });
        test("ranges of a sparse file are written, cleared and listed", share -> {
            ShareFileClient file = share.getFileClient("sparse");
            file.create(4L << 40);
            for (long offset : new long[] {0, 1L << 30, (4L << 40) - 1024}) {
                file.uploadRangeWithResponse(
                    new ShareFileUploadRangeOptions(new ByteArrayInputStream(new byte[1024]), 1024).setOffset(offset), null, null);
            }
            file.clearRangeWithResponse(1024, 1L << 30, null, null);
            List<Long> starts = file.listRanges().stream().map(ShareFileRange::getStart).collect(Collectors.toList());
            expect(List.of(0L, (4L << 40) - 1024), starts);
        });
        test("directories are listed with odd names", share -> {
            ShareDirectoryClient root = share.getRootDirectoryClient();
            root.createSubdirectory("a b");
            root.createSubdirectory("ä%2F");
            root.createFile("a&b", 0);
            expect(List.of("a b", "a&b", "ä%2F"), namesIn(root));
            expectCode(ShareErrorCode.PARENT_NOT_FOUND, () -> share.getDirectoryClient("missing/below").create());
        });
        test("files and directories are renamed", share -> {
            share.createDirectory("old");
            fill(share, "old/file", "moved".getBytes());
            fill(share, "target", "replaced".getBytes());
            ShareDirectoryClient moved = share.getDirectoryClient("old").rename("new");
            expect(List.of("file"), namesIn(moved));
            ShareFileClient file = share.getFileClient("new/file");
            expectCode(ShareErrorCode.RESOURCE_ALREADY_EXISTS, () -> file.rename("target"));
            file.renameWithResponse(new ShareFileRenameOptions("target").setReplaceIfExists(true), null, null);
            expect("moved", contentOf(share.getFileClient("target")));
        });
        test("properties of SMB and HTTP are kept", share -> {
            ShareFileClient file = fill(share, "file", "content".getBytes());
            OffsetDateTime written = OffsetDateTime.parse("2001-02-03T04:05:06.0000007Z");
            FileSmbProperties properties = new FileSmbProperties()
                .setNtfsFileAttributes(EnumSet.of(NtfsFileAttributes.READ_ONLY, NtfsFileAttributes.HIDDEN))
                .setFileLastWriteTime(written);
            file.setProperties(7, new ShareFileHttpHeaders().setContentType("text/plain"), properties, null);
            FileSmbProperties found = file.getProperties().getSmbProperties();
            expect(EnumSet.of(NtfsFileAttributes.READ_ONLY, NtfsFileAttributes.HIDDEN), found.getNtfsFileAttributes());
            expect(written.toInstant(), found.getFileLastWriteTime().toInstant());
            expect("text/plain", file.getProperties().getContentType());
            expectCode(ShareErrorCode.READ_ONLY_ATTRIBUTE, () -> file.setMetadata(Map.of("a", "b")));
        });
        test("a permission has a key", share -> {
            String key = share.createPermission("O:BAG:BAD:(A;;FA;;;SY)(A;;FA;;;BA)");
            expect(key, share.createPermission(share.getPermission(key)));
        });
        test("a snapshot keeps what it saw", share -> {
            ShareFileClient file = fill(share, "file", "before".getBytes());
            String snapshot = share.createSnapshot().getSnapshot();
            file.delete();
            expect(List.of(), namesIn(share.getRootDirectoryClient()));
            expect(List.of("file"), namesIn(share.getSnapshotClient(snapshot).getRootDirectoryClient()));
            expectCode(ShareErrorCode.SHARE_HAS_SNAPSHOTS, share::delete);
        });
        test("leases of files and shares are asked for", share -> {
            ShareFileClient file = fill(share, "file", "content".getBytes());
            ShareLeaseClient lease = new ShareLeaseClientBuilder().fileClient(file).buildClient();
            lease.acquireLease();
            expectCode(ShareErrorCode.fromString("LeaseIdMissing"), file::delete);
            lease.releaseLease();
            file.delete();
            ShareLeaseClient shareLease = new ShareLeaseClientBuilder().shareClient(share).buildClient();
            shareLease.acquireLease();
            expectCode(ShareErrorCode.fromString("LeaseIdMissing"), share::delete);
            shareLease.breakLease();
            share.delete();
        });
        test("a file is copied", share -> {
            ShareFileClient source = fill(share, "source", "copied".getBytes());
            ShareFileClient target = share.getFileClient("target");
            String url = source.getFileUrl().replace(".localhost/", ".localhost:" + PORT + "/");
            target.beginCopy(url, (Map<String, String>) null, Duration.ofSeconds(1)).waitForCompletion(Duration.ofSeconds(30));
            expect("copied", contentOf(target));
        });
        test("a SAS of the share reaches its files", share -> {
            fill(share, "file", "content".getBytes());
            String sas = share.generateSas(new ShareServiceSasSignatureValues(
                OffsetDateTime.now().plusHours(1), new ShareSasPermission().setReadPermission(true)));
            ShareClient signed = service().sasToken(sas).buildClient().getShareClient(share.getShareName());
            expect("content", contentOf(signed.getFileClient("file")));
            expectCode(ShareErrorCode.fromString("AuthorizationPermissionMismatch"), () -> signed.getFileClient("file").delete());
        });
        test("no handles are open", share -> {
            ShareFileClient file = fill(share, "file", new byte[0]);
            expect(0L, file.listHandles().stream().count());
            expect(0, file.forceCloseAllHandles(null, null).getClosedHandles());
        });
        System.exit(0);
    }
}
