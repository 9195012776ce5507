"""One file through two protocols: an SMB client holds a file open, and a client of the SDK learns that it has to wait.

Start a server, then run:  pip install smbprotocol azure-storage-file-share && python examples/smb_holds_a_file.py
AZURE_STORAGE_CONNECTION_STRING selects the account, SMB_SERVER the host and port of its shares; the defaults are local.
"""

import os
import uuid

import smbclient
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareClient, ShareFileClient, ShareServiceClient

DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "FileEndpoint=http://127.0.0.1:10003/devstoreaccount1;"
)
CONNECTION_STRING = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT)
HOST, _, PORT = os.environ.get("SMB_SERVER", "127.0.0.1:10445").partition(":")
SETTINGS = dict(part.partition("=")[::2] for part in CONNECTION_STRING.split(";") if part)


def main() -> None:
    # The user name is the account, the password is its key as text.
    smbclient.register_session(HOST, username=SETTINGS["AccountName"], password=SETTINGS["AccountKey"], port=int(PORT))
    service = ShareServiceClient.from_connection_string(CONNECTION_STRING)
    with service, service.create_share(f"held-{uuid.uuid4().hex[:12]}") as share:
        try:
            run(share, share.get_file_client("report.txt"))
        finally:
            share.delete_share()
            smbclient.reset_connection_cache()


def run(share: ShareClient, file: ShareFileClient) -> None:
    path = rf"\\{HOST}\{share.share_name}\report.txt"
    with smbclient.open_file(path, mode="w", share_access="r", port=int(PORT)) as held:
        held.write("written over SMB")
        held.flush()
        print("An SMB client has the file open. It lets others read, but not write.")
        print(f"REST reads what it wrote so far: '{file.download_file().readall().decode()}'.")
        print(f"REST writes: {outcome(file, b'written over REST')}")
        for handle in file.list_handles():
            print(f"The handle that is in the way: {handle['path']}, opened from {handle['client_ip'].partition(':')[0]}.")
    print("The SMB client closes the file.")
    print(f"REST writes: {outcome(file, b'written over REST')}")
    with smbclient.open_file(path, mode="r", port=int(PORT)) as again:
        print(f"SMB reads: '{again.read()}'.")


def outcome(file: ShareFileClient, content: bytes) -> str:
    try:
        file.upload_file(content)
    except HttpResponseError as error:
        code = getattr(error, "error_code", "")  # an enum if the library knows the code, otherwise a string
        return f"refused with {error.status_code} {getattr(code, 'value', code)}"
    return "done"


if __name__ == "__main__":
    main()
