// The scenario with github.com/hirochachacha/go-smb2, which rclone uses. Arguments: address, share, account, key, directory.
package main

import (
	"net"
	"os"

	"judges/scenario"

	"github.com/hirochachacha/go-smb2"
)

func main() {
	address, share, account, key, directory := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	connection, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	dialer := &smb2.Dialer{Initiator: &smb2.NTLMInitiator{User: account, Password: key}}
	session, err := dialer.Dial(connection)
	if err != nil {
		panic(err)
	}
	defer session.Logoff()
	mounted, err := session.Mount(share)
	if err != nil {
		panic(err)
	}
	defer mounted.Umount()
	scenario.Tell(mounted, directory)
}
