# Run by busybox in the guest: the share is mounted twice, at /m1 and /m2, over two connections.
fail() { echo "FAILED: $*"; exit 1; }
mkdir /m1/two; cd /m1/two

echo one > a; [ "$(dd if=/m2/two/a 2>/dev/null)" = one ] || fail "a file of the first mount"
echo two > /m2/two/b; [ "$(dd if=b 2>/dev/null)" = two ] || fail "a file of the second mount"

# a writer that keeps its file open: the other mount sees what it wrote, although it may cache
exec 7> shared; echo from the first >&7; sync
[ "$(dd if=/m2/two/shared 2>/dev/null)" = "from the first" ] || fail "a write of an open file"
echo from the second >> /m2/two/shared
exec 7>&-
[ "$(wc -l < shared)" = 2 ] || fail "an append through the other mount"

# locks of a file that both mounts have open: without that, the oplock of one mount lets it keep its locks to itself
echo locked > /m1/locked; sleep 3; exec 8<> /m2/locked; exec 9<> /m1/locked; sleep 1
lock /m1/locked sh -c 'lock -n /m2/locked true; [ $? = 9 ]' || fail "a lock is seen by the other mount"
lock -f /m1/locked sh -c 'lock -fn /m2/locked true; [ $? = 9 ]' || fail "a lock of a range is seen by the other mount"
lock -n /m2/locked true || fail "a released lock"
exec 8>&-; exec 9>&-; rm /m1/locked

rm -r /m2/two/*; rmdir /m2/two
sleep 2  # the client keeps attributes for a second
ls -A /m1/two > /dev/null 2>&1 && fail "a directory that the other mount removed"
echo all of it worked
