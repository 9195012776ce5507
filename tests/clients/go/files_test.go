// Microsoft's Go library for Azure Files. Each test has a share of its own.
package clients

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/fileerror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
)

var ctx = context.Background()

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expectCode(t *testing.T, err error, code fileerror.Code) {
	t.Helper()
	if !fileerror.HasCode(err, code) {
		t.Fatalf("expected %s, got %v", code, err)
	}
}

func newService(t *testing.T) *service.Client {
	client, err := service.NewClientFromConnectionString(os.Getenv("CONNECTION_STRING"), nil)
	check(t, err)
	return client
}

func newShare(t *testing.T) *share.Client {
	random := make([]byte, 8)
	_, _ = rand.Read(random)
	client := newService(t).NewShareClient("go-" + hex.EncodeToString(random))
	_, err := client.Create(ctx, &share.CreateOptions{Quota: to.Ptr(int32(3)), Metadata: map[string]*string{"Colour": to.Ptr("blue")}})
	check(t, err)
	return client
}

func newFile(t *testing.T, client *share.Client, name string, content []byte) *file.Client {
	found := client.NewRootDirectoryClient().NewFileClient(name)
	_, err := found.Create(ctx, int64(len(content)), nil)
	check(t, err)
	if len(content) > 0 {
		check(t, found.UploadBuffer(ctx, content, nil))
	}
	return found
}

func contentOf(t *testing.T, client *file.Client) []byte {
	response, err := client.DownloadStream(ctx, nil)
	check(t, err)
	content, err := io.ReadAll(response.Body)
	check(t, err)
	return content
}

func namesIn(t *testing.T, client *directory.Client, options *directory.ListFilesAndDirectoriesOptions) []string {
	var names []string
	pager := client.NewListFilesAndDirectoriesPager(options)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		check(t, err)
		for _, found := range page.Segment.Directories {
			names = append(names, *found.Name+"/")
		}
		for _, found := range page.Segment.Files {
			names = append(names, *found.Name)
		}
	}
	return names
}

func TestAShareHasQuotaMetadataAndStatistics(t *testing.T) {
	client := newShare(t)
	newFile(t, client, "file", []byte("content"))
	properties, err := client.GetProperties(ctx, nil)
	check(t, err)
	if *properties.Quota != 3 || *properties.Metadata["Colour"] != "blue" {
		t.Fatal(*properties.Quota, properties.Metadata)
	}
	_, err = client.SetProperties(ctx, &share.SetPropertiesOptions{Quota: to.Ptr(int32(5)), AccessTier: to.Ptr(share.AccessTierHot)})
	check(t, err)
	properties, err = client.GetProperties(ctx, nil)
	check(t, err)
	statistics, err := client.GetStatistics(ctx, nil)
	check(t, err)
	if *properties.Quota != 5 || *properties.AccessTier != "Hot" || *statistics.ShareUsageBytes != 7 {
		t.Fatal(*properties.Quota, *properties.AccessTier, *statistics.ShareUsageBytes)
	}
	_, err = client.Create(ctx, nil)
	expectCode(t, err, fileerror.ShareAlreadyExists)
}

func TestALargeFileGoesUpAndDownInParts(t *testing.T) {
	content := make([]byte, 9_000_001)
	_, _ = rand.Read(content)
	client := newFile(t, newShare(t), "large", content)
	found := make([]byte, len(content))
	_, err := client.DownloadBuffer(ctx, found, nil)
	check(t, err)
	if !bytes.Equal(found, content) {
		t.Fatal("the content differs")
	}
}

func TestRangesAreWrittenClearedAndListed(t *testing.T) {
	container := newShare(t)
	_, err := container.SetProperties(ctx, &share.SetPropertiesOptions{Quota: to.Ptr(int32(5000))})
	check(t, err)
	client := newFile(t, container, "ranges", nil)
	_, err = client.Resize(ctx, 4<<40, nil)
	check(t, err)
	for _, offset := range []int64{0, 1 << 30, 4<<40 - 1024} {
		_, err = client.UploadRange(ctx, offset, streaming.NopCloser(bytes.NewReader(make([]byte, 1024))), nil)
		check(t, err)
	}
	_, err = client.ClearRange(ctx, file.HTTPRange{Offset: 1 << 30, Count: 1024}, nil)
	check(t, err)
	listed, err := client.GetRangeList(ctx, nil)
	check(t, err)
	if len(listed.Ranges) != 2 || *listed.Ranges[1].Start != 4<<40-1024 {
		t.Fatal(listed.Ranges)
	}
}

func TestDirectoriesAreListedByPagesAndPrefix(t *testing.T) {
	root := newShare(t).NewRootDirectoryClient()
	for _, name := range []string{"a b", "ä%2F", "c#"} {
		_, err := root.NewSubdirectoryClient(name).Create(ctx, nil)
		check(t, err)
	}
	_, err := root.NewFileClient("a&b").Create(ctx, 0, nil)
	check(t, err)
	names := namesIn(t, root, &directory.ListFilesAndDirectoriesOptions{MaxResults: to.Ptr(int32(1))})
	if strings.Join(names, "|") != "a b/|a&b|c#/|ä%2F/" {
		t.Fatal(names)
	}
	if names := namesIn(t, root, &directory.ListFilesAndDirectoriesOptions{Prefix: to.Ptr("A")}); len(names) != 2 {
		t.Fatal(names)
	}
	_, err = root.NewSubdirectoryClient("missing").NewSubdirectoryClient("below").Create(ctx, nil)
	expectCode(t, err, fileerror.ParentNotFound)
}

func TestAFileIsRenamedAndReplaced(t *testing.T) {
	client := newShare(t)
	source := newFile(t, client, "source", []byte("moved"))
	target := newFile(t, client, "target", []byte("replaced"))
	_, err := source.Rename(ctx, "target", nil)
	expectCode(t, err, fileerror.ResourceAlreadyExists)
	_, err = source.Rename(ctx, "target", &file.RenameOptions{ReplaceIfExists: to.Ptr(true)})
	check(t, err)
	if string(contentOf(t, target)) != "moved" {
		t.Fatal("the target was not replaced")
	}
}

func TestADirectoryIsRenamedWithWhatIsBelow(t *testing.T) {
	client := newShare(t)
	old := client.NewDirectoryClient("old")
	_, err := old.Create(ctx, nil)
	check(t, err)
	newFile(t, client, "old/file", []byte("below"))
	_, err = old.Rename(ctx, "new", nil)
	check(t, err)
	if string(contentOf(t, client.NewDirectoryClient("new").NewFileClient("file"))) != "below" {
		t.Fatal("the file did not move")
	}
}

func TestPropertiesOfSmbAndHttp(t *testing.T) {
	client := newFile(t, newShare(t), "file", []byte("content"))
	written := time.Date(2001, 2, 3, 4, 5, 6, 700, time.UTC)
	_, err := client.SetHTTPHeaders(ctx, &file.SetHTTPHeadersOptions{
		HTTPHeaders:   &file.HTTPHeaders{ContentType: to.Ptr("text/plain")},
		SMBProperties: &file.SMBProperties{Attributes: &file.NTFSFileAttributes{ReadOnly: true, Hidden: true}, LastWriteTime: &written},
	})
	check(t, err)
	found, err := client.GetProperties(ctx, nil)
	check(t, err)
	if *found.ContentType != "text/plain" || *found.FileAttributes != "ReadOnly | Hidden" || !found.FileLastWriteTime.Equal(written) {
		t.Fatal(*found.ContentType, *found.FileAttributes, *found.FileLastWriteTime)
	}
	_, err = client.SetMetadata(ctx, &file.SetMetadataOptions{Metadata: map[string]*string{"a": to.Ptr("b")}})
	expectCode(t, err, fileerror.ReadOnlyAttribute)
}

func TestAPermissionHasAKey(t *testing.T) {
	client := newShare(t)
	created, err := client.CreatePermission(ctx, "O:BAG:BAD:(A;;FA;;;SY)(A;;FA;;;BA)", nil)
	check(t, err)
	found, err := client.GetPermission(ctx, *created.FilePermissionKey, nil)
	check(t, err)
	again, err := client.CreatePermission(ctx, *found.Permission, nil)
	check(t, err)
	if *again.FilePermissionKey != *created.FilePermissionKey {
		t.Fatal(*found.Permission)
	}
}

func TestASnapshotKeepsWhatItSaw(t *testing.T) {
	client := newShare(t)
	newFile(t, client, "file", []byte("before"))
	taken, err := client.CreateSnapshot(ctx, nil)
	check(t, err)
	newFile(t, client, "file", []byte("after!"))
	snapshot, err := client.WithSnapshot(*taken.Snapshot)
	check(t, err)
	if string(contentOf(t, snapshot.NewRootDirectoryClient().NewFileClient("file"))) != "before" {
		t.Fatal("the snapshot changed")
	}
	_, err = client.Delete(ctx, nil)
	expectCode(t, err, fileerror.ShareHasSnapshots)
	_, err = client.Delete(ctx, &share.DeleteOptions{DeleteSnapshots: to.Ptr(share.DeleteSnapshotsOptionTypeInclude)})
	check(t, err)
}

func TestALeaseIsAskedFor(t *testing.T) {
	client := newFile(t, newShare(t), "file", []byte("content"))
	holder, err := lease.NewFileClient(client, nil)
	check(t, err)
	acquired, err := holder.Acquire(ctx, nil)
	check(t, err)
	_, err = client.Delete(ctx, nil)
	expectCode(t, err, "LeaseIdMissing")
	_, err = client.Delete(ctx, &file.DeleteOptions{LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: acquired.LeaseID}})
	check(t, err)
}

func TestAFileIsCopied(t *testing.T) {
	client := newShare(t)
	source := newFile(t, client, "source", []byte("copied"))
	target := client.NewRootDirectoryClient().NewFileClient("target")
	copied, err := target.StartCopyFromURL(ctx, source.URL(), nil)
	check(t, err)
	if *copied.CopyStatus != file.CopyStatusTypeSuccess || string(contentOf(t, target)) != "copied" {
		t.Fatal(*copied.CopyStatus)
	}
	url, err := source.GetSASURL(sas.FilePermissions{Read: true}, time.Now().Add(time.Hour), nil)
	check(t, err)
	_, err = target.UploadRangeFromURL(ctx, url, 0, 3, 3, nil)
	check(t, err)
	if content := string(contentOf(t, target)); content != "copcop" {
		t.Fatal(content)
	}
}

func TestASasOfTheShareReachesItsFiles(t *testing.T) {
	client := newShare(t)
	newFile(t, client, "file", []byte("content"))
	url, err := client.GetSASURL(sas.SharePermissions{Read: true, List: true}, time.Now().Add(time.Hour), nil)
	check(t, err)
	signed, err := share.NewClientWithNoCredential(url, nil)
	check(t, err)
	found := signed.NewRootDirectoryClient().NewFileClient("file")
	if string(contentOf(t, found)) != "content" {
		t.Fatal("the content differs")
	}
	_, err = found.Delete(ctx, nil)
	expectCode(t, err, fileerror.AuthorizationPermissionMismatch)
}

func TestNoHandlesAreOpen(t *testing.T) {
	client := newFile(t, newShare(t), "file", nil)
	listed, err := client.ListHandles(ctx, nil)
	check(t, err)
	closed, err := client.ForceCloseHandles(ctx, "*", nil)
	check(t, err)
	if len(listed.Handles) != 0 || *closed.NumberOfHandlesClosed != 0 {
		t.Fatal(listed.Handles, *closed.NumberOfHandlesClosed)
	}
}

func TestLinksOfAnNfsShare(t *testing.T) {
	client := newService(t).NewShareClient("go-nfs-" + hex.EncodeToString([]byte(time.Now().Format("150405.000"))))
	_, err := client.Create(ctx, &share.CreateOptions{EnabledProtocols: to.Ptr("NFS")})
	check(t, err)
	root := client.NewRootDirectoryClient()
	_, err = root.NewFileClient("file").Create(ctx, 3, nil)
	check(t, err)
	linked, err := root.NewFileClient("hard").CreateHardLink(ctx, "file", nil)
	check(t, err)
	_, err = root.NewFileClient("soft").CreateSymbolicLink(ctx, "file", nil)
	check(t, err)
	found, err := root.NewFileClient("soft").GetSymbolicLink(ctx, nil)
	check(t, err)
	if *linked.LinkCount != 2 || *found.LinkText != "file" {
		t.Fatal(*linked.LinkCount, *found.LinkText)
	}
}
