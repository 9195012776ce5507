# Run by busybox in the guest, in the root of the mounted share. DIRECTORY is replaced by a new name.
fail() { echo "FAILED: $*"; exit 1; }
mkdir DIRECTORY; cd DIRECTORY

# files: write, read, append, overwrite in the middle, truncate
echo hello > a; [ "$(dd if=a 2>/dev/null)" = hello ] || fail "a small file"
echo more >> a; [ "$(wc -c < a)" = 11 ] || fail "an append"
printf HE | dd of=a conv=notrunc 2>/dev/null; [ "$(head -n 1 a)" = HEllo ] || fail "an overwrite"
truncate -s 3 a; [ "$(dd if=a 2>/dev/null)" = HEl ] || fail "a truncate"
dd if=/dev/urandom of=/tmp/large bs=1M count=12 2>/dev/null
cp /tmp/large large; cmp large /tmp/large || fail "a large copy"
dd if=/tmp/large of=synced bs=4k count=300 conv=fsync 2>/dev/null
dd if=/tmp/large of=/tmp/part bs=4k count=300 2>/dev/null
cmp synced /tmp/part || fail "a synced file"
dd if=/dev/zero of=sparse bs=1 count=1 seek=5000000 2>/dev/null
[ "$(wc -c < sparse)" = 5000001 ] || fail "a file with a hole"
dd if=large of=/tmp/piece bs=1k skip=5000 count=100 2>/dev/null
dd if=/tmp/large of=/tmp/same bs=1k skip=5000 count=100 2>/dev/null
cmp /tmp/piece /tmp/same || fail "a read in the middle"

# names: rename, replace, another case, every script, characters that SMB refuses, many in one directory
mv a b; [ -e a ] && fail "the old name"
echo other > c; mv b c; [ "$(dd if=c 2>/dev/null)" = HEl ] || fail "a rename over a file"
[ -e C ] || fail "another case"
mkdir sub "with space"; mv c sub/c; mv sub "with space/ünïcødé 日本"
[ "$(dd if="with space/ünïcødé 日本/c" 2>/dev/null)" = HEl ] || fail "a moved directory"
echo colon > "a:b?c"; [ "$(ls | grep -c "a:b?c")" = 1 ] || fail "a name with a colon"
mkdir many; i=0; while [ $i -lt 300 ]; do echo $i > many/file-number-$i; i=$((i+1)); done
[ "$(ls many | wc -l)" = 300 ] || fail "a listing"
[ "$(find . -type f -name 'file-number-*' | wc -l)" = 300 ] || fail "find"
cp -r many copies; [ "$(find copies -type f | wc -l)" = 300 ] || fail "a copied tree"

# times and attributes, space
touch -d "2020-01-02 03:04:05" c2; [ "$(stat -c %Y c2)" = 1577934245 ] || fail "a time"
df . | grep -q 10.0.2.2 || fail "df"
chmod a-w c2; (echo x > c2) 2>/dev/null && fail "a file that is read-only"
sleep 2; stat c2 > /dev/null  # the client keeps attributes for a second
chmod a+w c2; echo x > c2

# open files: deleted while open, locked
exec 7> held; echo first >&7; rm held; echo second >&7 || fail "a write to a deleted file"
exec 7>&-
[ -e held ] && fail "a deleted file"
lock locked sh -c 'lock -n locked true; [ $? = 9 ]' || fail "flock"
lock -f locked sh -c 'lock -fn locked true; [ $? = 9 ]' || fail "a lock of a range"
lock -s locked lock -sn locked true || fail "shared locks"
lock -n locked true || fail "a released lock"

# deletion
rmdir many 2>/dev/null && fail "a directory with files is removed"
rm -r many copies "with space"; rm large synced sparse c2 "a:b?c"
rm -f locked
[ "$(ls -A)" = "" ] || fail "something is left: $(ls -A)"
cd ..; rmdir DIRECTORY; [ -e DIRECTORY ] && fail "the directory"
echo all of it worked
