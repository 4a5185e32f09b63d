;; Names a tool that the server does not list.
(func $run (param $target i32) (result i32)
  (call $fail 'hostile.holds' 'swordfish' 'acme.broken' (i32.const -1))
  (call $finish))
