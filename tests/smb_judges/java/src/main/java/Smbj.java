import static com.hierynomus.mssmb2.SMB2CreateDisposition.FILE_CREATE;
import static com.hierynomus.mssmb2.SMB2CreateDisposition.FILE_OPEN;

import com.hierynomus.msdtyp.AccessMask;
import com.hierynomus.mssmb2.SMB2CreateDisposition;
import com.hierynomus.mssmb2.SMB2ShareAccess;
import com.hierynomus.smbj.SMBClient;
import com.hierynomus.smbj.SmbConfig;
import com.hierynomus.smbj.auth.AuthenticationContext;
import com.hierynomus.smbj.share.DiskShare;
import com.hierynomus.smbj.share.File;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Random;
import java.util.TreeSet;

/** smbj: store, read, rename, list, delete. Arguments: host, port, share, account, key, directory, "sign" or "encrypt". */
public class Smbj {
    public static void main(String[] arguments) throws Exception {
        SmbConfig settings = SmbConfig.builder()
            .withEncryptData(arguments[6].equals("encrypt")).withSigningRequired(true).build();
        try (SMBClient client = new SMBClient(settings);
             var connection = client.connect(arguments[0], Integer.parseInt(arguments[1]))) {
            var account = new AuthenticationContext(arguments[3], arguments[4].toCharArray(), "AZURE");
            try (var session = connection.authenticate(account); var share = (DiskShare) session.connectShare(arguments[2])) {
                tell(share, arguments[5]);
            }
        }
        System.out.println("done");
    }

    static void tell(DiskShare share, String directory) throws Exception {
        byte[] content = new byte[(3 << 20) + 17];
        new Random().nextBytes(content);
        share.mkdir(directory);
        try (File file = open(share, directory + "\\first", AccessMask.GENERIC_WRITE, FILE_CREATE)) {
            try (var stream = file.getOutputStream()) {
                stream.write(content);
            }
        }
        expect(Arrays.equals(read(share, directory + "\\first"), content), "the content comes back");
        try (File file = open(share, directory + "\\first", AccessMask.DELETE, FILE_OPEN)) {
            file.rename(directory + "\\second ü");
        }
        expect(!share.fileExists(directory + "\\first"), "the old name is gone");
        var names = new TreeSet<String>();
        share.list(directory).forEach(entry -> names.add(entry.getFileName()));
        expect(names.toString().equals("[., .., second ü]"), "the file is listed: " + names);
        expect(Arrays.equals(read(share, directory + "\\second ü"), content), "the content is at the new name");
        expect(share.getShareInformation().getTotalSpace() > 0, "the share has a size");
        share.rm(directory + "\\second ü");
        share.rmdir(directory, false);
        expect(!share.folderExists(directory), "the directory is gone");
    }

    static byte[] read(DiskShare share, String name) throws Exception {
        try (File file = open(share, name, AccessMask.GENERIC_READ, FILE_OPEN); var stream = file.getInputStream()) {
            return stream.readAllBytes();
        }
    }

    static File open(DiskShare share, String name, AccessMask access, SMB2CreateDisposition disposition) {
        return share.openFile(name, EnumSet.of(access), null, SMB2ShareAccess.ALL, disposition, null);
    }

    static void expect(boolean truth, String what) {
        if (!truth) {
            throw new AssertionError(what);
        }
    }
}
