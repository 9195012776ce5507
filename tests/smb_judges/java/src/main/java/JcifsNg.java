import java.util.Arrays;
import java.util.Properties;
import java.util.Random;
import java.util.TreeSet;
import jcifs.CIFSContext;
import jcifs.config.PropertyConfiguration;
import jcifs.context.BaseContext;
import jcifs.smb.NtlmPasswordAuthenticator;
import jcifs.smb.SmbFile;

/** jcifs-ng: store, read, rename, list, delete. Arguments: host, port, share, account, key, directory, "sign" or "encrypt". */
public class JcifsNg {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.setProperty("jcifs.smb.client.minVersion", "SMB210");
        settings.setProperty("jcifs.smb.client.maxVersion", "SMB311");
        settings.setProperty("jcifs.smb.client.signingEnforced", "true");
        settings.setProperty("jcifs.smb.client.encryptionEnabled", String.valueOf(arguments[6].equals("encrypt")));
        settings.setProperty("jcifs.smb.client.dfs.disabled", "true");
        CIFSContext context = new BaseContext(new PropertyConfiguration(settings));
        tell(arguments, context.withCredentials(new NtlmPasswordAuthenticator("AZURE", arguments[3], arguments[4])));
        context.close();
        System.out.println("done");
    }

    static void tell(String[] arguments, CIFSContext context) throws Exception {
        String url = "smb://" + arguments[0] + ":" + arguments[1] + "/" + arguments[2] + "/" + arguments[5] + "/";
        byte[] content = new byte[(3 << 20) + 17];
        new Random().nextBytes(content);
        SmbFile directory = new SmbFile(url, context);
        directory.mkdir();
        SmbFile first = new SmbFile(url + "first", context);
        try (var stream = first.getOutputStream()) {
            stream.write(content);
        }
        expect(Arrays.equals(read(first), content), "the content comes back");
        SmbFile second = new SmbFile(url + "second ü", context);
        first.renameTo(second);
        expect(!new SmbFile(url + "first", context).exists(), "the old name is gone");
        var names = new TreeSet<String>(Arrays.asList(directory.list()));
        expect(names.toString().equals("[second ü]"), "the file is listed: " + names);
        expect(Arrays.equals(read(second), content), "the content is at the new name");
        second.setLastModified(1_577_934_245_000L);
        expect(new SmbFile(url + "second ü", context).getLastModified() == 1_577_934_245_000L, "the time is kept");
        second.delete();
        directory.delete();
        expect(!new SmbFile(url, context).exists(), "the directory is gone");
    }

    static byte[] read(SmbFile file) throws Exception {
        try (var stream = file.getInputStream()) {
            return stream.readAllBytes();
        }
    }

    static void expect(boolean truth, String what) {
        if (!truth) {
            throw new AssertionError(what);
        }
    }
}
