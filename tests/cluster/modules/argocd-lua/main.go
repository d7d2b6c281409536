// argocd-lua runs a health check as Argo CD does: by gopher-lua, with the object in the global obj,
// and with no more than the base library. It reads a JSON list of objects, and writes their healths.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	script, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var objects []any
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		return err
	}
	healths := [][2]string{}
	for _, object := range objects {
		state := lua.NewState(lua.Options{SkipOpenLibs: true})
		lua.OpenBase(state)
		state.SetGlobal("obj", value(state, object))
		if err := state.DoString(string(script)); err != nil {
			return err
		}
		made, is := state.Get(-1).(*lua.LTable)
		if !is {
			return fmt.Errorf("the script returns no table")
		}
		healths = append(healths, [2]string{made.RawGetString("status").String(), made.RawGetString("message").String()})
		state.Close()
	}
	return json.NewEncoder(os.Stdout).Encode(healths)
}

func value(state *lua.LState, from any) lua.LValue {
	switch from := from.(type) {
	case bool:
		return lua.LBool(from)
	case float64:
		return lua.LNumber(from)
	case string:
		return lua.LString(from)
	case []any:
		table := state.CreateTable(len(from), 0)
		for _, item := range from {
			table.Append(value(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(from))
		for key, item := range from {
			table.RawSetString(key, value(state, item))
		}
		return table
	}
	return lua.LNil
}
