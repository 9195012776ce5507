"""The tests of smbtorture that Verditer has to pass, in gates, and the reason for each one that is not run.

Names are those of `smbtorture --list` without the leading `smb2.` and without the repeated last part. Every test of the suite
stands in exactly one of the two tables; `test_torture.py` checks that.
"""

from collections.abc import Iterator

GATES: dict[str, dict[str, str | tuple[str, ...]]] = {
    "basic": {
        "connect": "",
        "tcon": "",
        "session-id": "",
        "mkdir": "",
        "maxfid": "",
        "openattr": "",
        "winattr": "",
        "sdread": "",
        "secleak": "",
        "async_dosmode": "",
        "acls": "INHERITFLAGS SDFLAGSVSCHOWN",
        "session-require-signing": "bug15397",
        "create_no_streams": "no_stream",
        "rw": "rw1 rw2",
        "read": "eof position dir access",
        "credits": "session_setup_credits_granted single_req_credits_granted skipped_mid",
        "compound": "related1 related2 related3 related5 related6 related8 related9 unrelated1 invalid1 invalid2 invalid3"
        " invalid4 interim1 compound-break create-write-close",
        "compound_async": "flush_close flush_flush",
        "compound_find": "compound_find_related compound_find_unrelated compound_find_close",
        "create": "brlocked multi delete leading-slash impersonation mkdir-dup dir-alloc-size dosattr_tmp_dir aclfile"
        " acldir bench-path-contention-shared",
        "sharemode": "sharemode-access access-sharemode bug14375",
        "deny": "deny1 deny2",
        "delete-on-close-perms": (
            *("OVERWRITE_IF", "CREATE", "CREATE Existing", "CREATE_IF"),
            *("FIND_and_set_DOC", "READONLY", "BUG14427"),
        ),
        "rename": "simple no_sharing share_delete_and_delete_access no_share_delete_but_delete_access"
        " share_delete_no_delete_access msword rename_dir_openfile rename_dir_bench close-full-information",
        "lock": "valid-request rw-shared rw-exclusive auto-unlock lock async cancel cancel-tdis cancel-logoff errorcode"
        " zerobytelength zerobyteread unlock multiple-unlock stacking contend context range overlap truncate",
        "dir": "find fixed many sorted large-files",
        "getinfo": "qsec_buffercheck granted",
        "fileid": "unique unique-dir",
        "timestamps": "test_close_not_attrib time_t_15032385535 time_t_10000000000 time_t_4294967295 time_t_1 time_t_0 time_t_-1"
        " time_t_-2 time_t_1968 freeze-thaw delayed-1write",
        "session": "two_logoff ntlmssp_bug14932",
        "charset": (
            "Testing composite character (a umlaut)",
            "Testing naked diacritical (umlaut)",
            "Testing wide-a",
        ),
    },
    "notify": {
        "notify": "tcon tdis tdis1 close logoff session-reconnect invalid-reauth double file tcp overflow rmdir1 rmdir2 rmdir3"
        " rmdir4 handle-permissions basedir",
    },
    "server-side copy": {
        "ioctl": "req_resume_key req_two_resume_keys copy_chunk_simple copy_chunk_multi copy_chunk_tiny copy_chunk_overwrite"
        " copy_chunk_append copy_chunk_limits copy_chunk_src_lock copy_chunk_dest_lock copy_chunk_bad_key"
        " copy_chunk_src_is_dest copy_chunk_src_is_dest_overlap copy_chunk_bad_access copy_chunk_write_access"
        " copy_chunk_src_exceed copy_chunk_src_exceed_multi copy_chunk_max_output_sz copy_chunk_zero_length"
        " copy_chunk_across_shares copy_chunk_across_shares2 copy_chunk_across_shares3 copy_chunk_sparse_dest",
    },
    "oplocks": {
        "oplock": "exclusive1 exclusive2 exclusive3 exclusive4 exclusive5 exclusive6 exclusive9 batch1 batch2 batch3 batch4"
        " batch5 batch6 batch7 batch8 batch9 batch9a batch10 batch11 batch12 batch13 batch14 batch15 batch16 batch19 batch21"
        " batch22a batch23 batch24 batch25 doc brl1 brl2 brl3 levelii500 levelii501 levelii502 statopen1",
        "session": "reconnect1 reconnect2 reauth1 reauth2 reauth3 reauth4 reauth6 signing-hmac-sha-256 signing-aes-128-cmac"
        " signing-aes-128-gmac encryption-aes-128-ccm encryption-aes-128-gcm encryption-aes-256-ccm encryption-aes-256-gcm"
        " bind_negative_smb202 bind_negative_smb210s bind_negative_smb210d bind_negative_smb3to2s bind_negative_smb3to2d"
        " bind_negative_smb3signCtoGs bind_negative_smb3signCtoGd bind_negative_smb3signHtoGs bind_negative_smb3signHtoGd"
        " bind_negative_smb3signGtoCs bind_negative_smb3signGtoCd bind_negative_smb3signGtoHs bind_negative_smb3signGtoHd"
        " bind_negative_smb3sneGtoCs bind_negative_smb3sneGtoCd bind_negative_smb3sneGtoHs bind_negative_smb3sneGtoHd"
        " bind_negative_smb3sneCtoGs bind_negative_smb3sneCtoGd bind_negative_smb3sneHtoGs bind_negative_smb3sneHtoGd"
        " bind_negative_smb3signC30toGs bind_negative_smb3signC30toGd bind_negative_smb3signH2XtoGs"
        " bind_negative_smb3signH2XtoGd bind_negative_smb3signGtoC30s bind_negative_smb3signGtoC30d"
        " bind_negative_smb3signGtoH2Xs bind_negative_smb3signGtoH2Xd",
    },
    "beyond Samba": {
        "create": "open blob",
        "notify": "dir rec",
        "rename": "simple_nodelete",
        "dir": "modify",
        "rw": "invalid",
        "compound": "interim2",
        "oplock": "batch20",
    },
}
"""Gate → suite → tests. An empty string is a suite that is one test."""

SAMBA_FAILS_HERE = {"session.reauth2", "session.reauth3", "session.reauth4"}
"""They log in again as nobody, and the reference server refuses nobody the files of its user, root."""

SAMBA_FAILS = "Samba 4.17 itself does not pass it"
NEEDS_OPTION = "needs an option that describes the server to smbtorture"
NO_EAS = "sets extended attributes, which Azure Files does not have"
NO_STREAMS = "opens named streams, which Azure Files does not have"
NO_DENIAL = "needs an access control list that denies: an account key is allowed everything"
NO_LEASES = "SMB leases are declined; clients use oplocks"
NO_DURABLE = "durable handles are declined; clients open again"
NO_CHANNELS = "multichannel is declined"
NO_COMPRESSION = "compresses files, which Azure Files does not do"
NO_SPARSE = "asks for the sparse attribute, which Azure Files does not have"
NO_DUPLICATES = "shares blocks between files on request, which Azure Files does not do"
LATE_WRITE_TIME = "wants the write time to stay for a while after a write; REST has to see it with its next request (contract F5)"
KERBEROS = "needs Kerberos, or a second user"
OPEN_END = "waits for a signal, or scans for statuses: it judges nothing"

NOT_RUN: dict[str, str] = {
    "scan.*": OPEN_END,
    "hold-oplock": OPEN_END,
    "hold-sharemode": "run by test_interplay.py",
    "check-sharemode": OPEN_END,
    "bench.*": "measures speed",
    "aio_delay.*": NEEDS_OPTION,
    "change_notify_disabled.*": NEEDS_OPTION,
    "twrp.*": NEEDS_OPTION + "; test_smbclient.py reads previous versions",
    "samba3misc.*": NEEDS_OPTION,
    "set-sparse-ioctl": NEEDS_OPTION,
    "zero-data-ioctl": NEEDS_OPTION,
    "ea.*": NEEDS_OPTION,
    "notify-inotify.*": "changes files behind the server",
    "kernel-oplocks.*": "opens files behind the server",
    "mangle": "asks for 8.3 names, which Azure Files does not have",
    "streams.*": NO_STREAMS,
    "ioctl-on-stream": NO_STREAMS,
    "ioctl.copy-chunk streams": NO_STREAMS,
    "oplock.stream1": NO_STREAMS,
    "oplock.batch26": NO_STREAMS,
    "fileid.fileid": NO_STREAMS,
    "fileid.fileid-dir": NO_STREAMS,
    "compound.compound-padding": NO_STREAMS,
    "getinfo.normalized": NO_STREAMS,
    "getinfo.qfile_buffercheck": NO_EAS,
    "getinfo.getinfo_access": NO_EAS,
    "getinfo.complex": SAMBA_FAILS,
    "getinfo.fsinfo": "asks for quota information",
    "getinfo.qfs_buffercheck": "asks for quota information",
    "create.quota-fake-file": "asks for quota information",
    "acls.[ADMO]*": NO_DENIAL,
    "acls.CREATOR": NO_DENIAL,
    "acls.GENERIC": NO_DENIAL,
    "acls.INHERITANCE": NO_DENIAL,
    "acls_non_canonical.*": NO_DENIAL,
    "maximum_allowed": NO_DENIAL,
    "compound.related4": NO_DENIAL,
    "compound.related7": NO_DENIAL,
    "create.nulldacl": NO_DENIAL,
    "delete-on-close-perms.OVERWRITE_IF Existing": NO_DENIAL,
    "delete-on-close-perms.CREATE_IF Existing": NO_DENIAL,
    "create.gentest": SAMBA_FAILS,
    "rename.no_share_delete_no_delete_access": SAMBA_FAILS,
    "dir.one": SAMBA_FAILS,
    "dir.file-index": "needs a server with file indexes",
    "setinfo": SAMBA_FAILS,
    "dosmode": SAMBA_FAILS,
    "timestamp_resolution.*": LATE_WRITE_TIME,
    "timestamps.delayed-write-vs-*": LATE_WRITE_TIME,
    "timestamps.delayed-2write": LATE_WRITE_TIME,
    "charset.Testing partial surrogate": SAMBA_FAILS,
    "oplock.batch22b": "blocks a connection with iptables",
    "session.reauth5": SAMBA_FAILS,
    "session.bind_negative_smb2to3?": SAMBA_FAILS + " without multichannel",
    "session.bind_negative_smb3to3?": SAMBA_FAILS + " without multichannel",
    "session.bind_negative_smb3encGtoC?": SAMBA_FAILS + " without multichannel",
    "session.bind_negative_smb3signCtoH?": SAMBA_FAILS + " without multichannel",
    "session.bind_negative_smb3signHtoC?": SAMBA_FAILS + " without multichannel",
    "session.expire*": KERBEROS,
    "session.bind_different_user": KERBEROS,
    "session.bind1": NO_CHANNELS,
    "session.bind2": NO_CHANNELS,
    "session.bind_invalid_auth": NO_CHANNELS,
    "multichannel.*": NO_CHANNELS,
    "lease.*": NO_LEASES,
    "durable-*": NO_DURABLE,
    "replay.*": NO_DURABLE,
    "lock.replay_*": NO_DURABLE,
    "lock.rw-none": "tests a defect of Windows Server 2008",
    "lock.ctdb-delrec-deadlock": "needs a cluster of Samba servers",
    "read.bug14607": "needs a control code of Samba's tests",
    "ioctl.bug14607": "needs a control code of Samba's tests",
    "ioctl.bug14769": "needs a control code of Samba's tests",
    "ioctl.bug14788.*": "needs a share without permissions, or multichannel",
    "ioctl.network_interface_info": NO_CHANNELS,
    "ioctl.shadow_copy": "needs a snapshot; test_smbclient.py reads previous versions",
    "ioctl.compress_*": NO_COMPRESSION,
    "ioctl.sparse_*": NO_SPARSE,
    "ioctl.trim_simple": "trims files, which Azure Files does not do",
    "ioctl.dup_extents_*": NO_DUPLICATES,
    "notify.valid-req": "depends on the number of events of one write, which differs between servers",
    "notify.mask": SAMBA_FAILS,
    "notify.mask-change": SAMBA_FAILS,
    "notify.tree": SAMBA_FAILS,
}
"""Pattern of names → reason."""


def names_in(gate: str) -> Iterator[str]:
    """The names of the tests of a gate, such as `lock.cancel`."""
    for suite, tests in GATES[gate].items():
        names = tests.split(" ") if isinstance(tests, str) else tests
        yield from (f"{suite}.{name}" if name else suite for name in names)


GATED = [name for gate in GATES for name in names_in(gate)]
